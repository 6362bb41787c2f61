"""Read the answer that a text commits to, and compare two answers: number, choice letter, or text.

A text commits by the last of these forms in it that holds an answer (markup ignored):

* an answer line: ``(the )?(correct|final|best )?answer( is| :| =)``; of a number what follows its last
  ``=``, else its first value; an empty rest means the next line, if that is nothing but the answer;
* a JSON key ``answer`` (or ``final_answer``) whose value starts with the answer or has a ``=`` before it;
* a line ``#### X`` whose rest is nothing but the answer; never for kind text;
* a box, ``\\boxed{X}``, also one that was cut off;
* the user's own ``pattern``; or a text that is nothing but the answer (for kind text: the gold answer).

Conventions
-----------
* No answer is None: the caller counts an abstention. It is never 0, and nothing here raises on any text.
* A number is returned as it was written, in plain digits: ``8000``, ``-3``, ``0.5``, ``1/2`` in lowest terms;
  a box may also hold an expression, ``2\\sqrt{3}``, returned as LaTeX. A choice is its upper-case letter.
* Numbers compare exactly, as fractions. Currency, thousands separators, trailing zeros, one unit word and
  ``%`` are removed; ``%`` never scales, but thousand, million, billion, trillion are part of the number.

What counts
-----------
* "not" and the like before the value ("the answer is not B", "the incorrect answer is B"), several values
  ("3 or 4", "3-5", "(A) and (C)"), a sum without its result ("3 + 4") and ``None`` commit to nothing.
* Error messages commit to nothing: the 3 of ``SyntaxError: invalid syntax (<string>, line 3)`` is no answer.
* The fallback (the last number of the text; the last line's one choice letter) looks at what stands after the
  last error message, within the last 20,000 characters.

Source: ours, after what the scripts of GEMMAS, AgentPrune and AgentDropout do and get wrong.
"""

from counterpoint.answers.choices import read_options
from counterpoint.answers.equality import same_answer
from counterpoint.answers.numbers import Number
from counterpoint.answers.numbers import number as read_number
from counterpoint.answers.programs import spoken
from counterpoint.answers.reading import infer_kind, read_answer

__all__ = ["Number", "infer_kind", "read_answer", "read_number", "read_options", "same_answer", "spoken"]
