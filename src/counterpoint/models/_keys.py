"""The key of an endpoint: from which variable it is read, and how it is found again in what a server says.

Conventions
-----------
Nothing here shows a key, nor what may be one: users pass the key itself where its variable's name belongs.
"""

from __future__ import annotations

import html.entities
import os
import re

from counterpoint.errors import ModelError, UsageError
from counterpoint.secrets import mask

__all__ = ["KEY_VARIABLE", "key_forms", "named_key"]

KEY_VARIABLE = "OPENAI_API_KEY"
"""Where the key is looked for unless another variable is named."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_TELLABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
"""A name that people give to a variable; what else may be a key is not repeated."""


def named_key(variable: str) -> str:
    """The key in an environment variable, or an empty text where the default one is not set.

    Raises
    ------
    UsageError: this is no name of a variable.
    ModelError: no such variable is set, though it was named.
    """
    if not _NAME.fullmatch(variable):
        raise UsageError(
            "the variable that holds the key (--api-key-env) has a name of letters, digits and _; what was "
            "given is not repeated here, for it may be the key itself"
        )
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_VARIABLE:
        tellable = _TELLABLE.fullmatch(variable) and mask(variable) == variable
        told = f" {variable}" if tellable else " (not repeated here, for it may be the key itself)"
        raise ModelError(f"no key: the environment variable{told} that was named for it is not set")
    return key


def key_forms(key: str) -> re.Pattern[str]:
    r"""What a key may look like where somebody quotes it: plain, or escaped for JSON, HTML or a URL.

    >>> told = ['a/b"c', r'a\/b\"c', "a/b&quot;c", "a%2Fb%22c", "a&#x2F;b&#34;c"]
    >>> [key_forms('a/b"c').sub("-", text) for text in told]
    ['-', '-', '-', '-', '-']
    """
    return re.compile("".join(map(_forms_of, key)))


def _forms_of(character: str) -> str:
    code = ord(character)
    known = {} if character.isalnum() else html.entities.html5
    entities = {name.rstrip(";") for name, value in known.items() if value == character}
    forms = [
        re.escape(character),
        rf"(?i:u00{code:02x})",  # after a backslash, as all that JSON escapes
        rf"(?i:%(?:25)?{code:02x})",
        rf"(?i:&(?:amp;)?#0*{code};)",
        rf"(?i:&(?:amp;)?#x0*{code:x};)",
        *(rf"&(?:amp;)?{name};" for name in sorted(entities)),
    ]
    return rf"\\{{0,4}}(?:{'|'.join(forms)})"
