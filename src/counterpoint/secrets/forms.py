"""Secrets that are known by their own form, wherever they stand: keys of providers, PEM, JWT, URLs, commands.

Conventions
-----------
* A form has an anchor, a literal without which it is not in a text; `FORM_SCREENS` looks for all of them.
* What a pattern takes away crosses no quote, bracket or brace, so that JSON stays JSON; only a PEM block may
  cross quotes, from one string of a list to the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FORMS", "FORM_SCREENS", "MIXED", "Rule", "runs"]


@dataclass(frozen=True)
class Rule:
    """One kind of secret and how it is found: literal anchors, each with the pattern that starts there."""

    name: str
    """The kind, as the hint says it; without digits, so that no hint is taken for a value."""
    patterns: dict[str, re.Pattern[str]]
    """Anchor to pattern; what the groups named ``before`` and ``after`` catch stays."""
    accepts: Callable[[re.Match[str]], bool] = lambda found: True
    """The last word on a match, for what a pattern says badly."""

    def replacement(self, found: re.Match[str]) -> str:
        """What takes the place of a match; itself where it is no secret."""
        if not self.accepts(found):
            return found[0]
        kept, hint = found.groupdict(""), f"[secret:{self.name}]"
        masked = _ITEM.sub(hint, kept["value"]) if kept.get("list") else hint
        return f"{kept.get('before', '')}{masked}{kept.get('after', '')}"


MIXED = re.compile(r"(?=[^A-Za-z]*[A-Za-z])[^0-9]*[0-9]")
"""Has a letter and a digit."""
_ITEM = re.compile(r"""[^\s"'\\,]+""")
"""An item of a list, between its quotes and commas."""


def _starting(*prefixes: str, then: str) -> dict[str, re.Pattern[str]]:
    """Keys known by their prefix, before which stands no letter, digit, ``_`` or ``-`` (``\\n`` may)."""
    return {
        prefix: re.compile(rf"{literal}(?:(?<![A-Za-z0-9_-]{literal})|(?<=\\[nrt]{literal})){then}")
        for prefix in prefixes
        for literal in (re.escape(prefix),)
    }


def _parameter(name: str, then: str) -> dict[str, re.Pattern[str]]:
    """A parameter of a URL's query, where ``&`` may be written ``&amp;`` or ``\\u0026``."""
    return {f"{name}=": re.compile(rf"(?P<before>{name}=(?:(?<=[?&;]{name}=)|(?<=u0026{name}=))){then}")}


_PRIVATE = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_LOGIN = r"""["']?[^\s:"'\\<>${}\[\]]{1,64}:)(?!//)[^\s"'\\<>${}\[\]*]{3,}+"""
_AFTER_P = r"""["']?)(?![*-])[^\s"'\\<>${}\[\]()*]{4,}+"""
_SIGNATURE = r"""(?=[A-Za-z%_~+/=.-]{0,400}[0-9])[A-Za-z0-9%_~+/=.-]{16,}"""
_GLUED = ("mysql", "mariadb")
_LOGINS = ("docker login", "podman login", "registry login")
_LINE = 200
"""Characters before an option in which its command is looked for."""


def runs(key: str) -> bool:
    """A long run without hyphens, or a part that mixes letters and digits; no ``sk-learn-step-2``."""
    parts = re.split(r"[-_]", key)
    return any(len(part) >= 20 or (len(part) >= 12 and MIXED.match(part)) for part in parts)


def _is_parameter(found: re.Match[str]) -> bool:
    value = found.groupdict().get("value")
    return value is None or (runs(value) and bool(MIXED.match(value)))


def _of_command(found: re.Match[str]) -> bool:
    """Does the command on the same line take a login, or a password after ``-p``?"""
    line = found.string[max(0, found.start() - _LINE) : found.start()]
    command = line[max(map(line.rfind, "\n;|&")) + 1 :]
    if found["before"][:3] != " -p":
        return "curl" in command
    if command.endswith("sshpass") or any(login in command for login in _LOGINS):
        return True
    return found["before"][3:4] != " " and any(name in command for name in _GLUED)


FORMS: tuple[Rule, ...] = (
    Rule(
        "private-key",
        {
            "-----BEGIN ": re.compile(
                rf"-----BEGIN {_PRIVATE}"
                r"""(?:[^-"{}\[\]]*+(?:(?:-(?!----)|"(?!\s{0,9}:))[^-"{}\[\]]*+)*+"""
                rf"-----END {_PRIVATE}(?!\\{{0,3}}\"\s{{0,9}}:)"
                r"|(?:(?:\s|\\[nr]){0,9}[A-Za-z0-9+/=]{20,}+)*+)"
            )
        },
    ),
    Rule("anthropic", _starting("sk-ant-", then=r"[A-Za-z0-9_-]{16,}")),
    Rule("openrouter", _starting("sk-or-", then=r"[A-Za-z0-9_-]{20,}")),
    Rule("langfuse", _starting("sk-lf-", "pk-lf-", then=r"[A-Za-z0-9_-]{16,}")),
    Rule("openai", _starting("sk-", then=r"[A-Za-z0-9_-]{16,}"), lambda found: runs(found[0][3:])),
    Rule(
        "google",
        {
            **_starting("AIza", then=r"[A-Za-z0-9_-]{30,}"),
            **_starting("ya29.", "GOCSPX-", then=r"[A-Za-z0-9_-]{20,}"),
        },
    ),
    Rule("groq", _starting("gsk_", then=r"[A-Za-z0-9]{20,}")),
    Rule("xai", _starting("xai-", then=r"[A-Za-z0-9]{32,}")),
    Rule("perplexity", _starting("pplx-", then=r"[A-Za-z0-9]{32,}")),
    Rule("nvidia", _starting("nvapi-", then=r"[A-Za-z0-9_-]{32,}")),
    Rule("replicate", _starting("r8_", then=r"[A-Za-z0-9]{30,}")),
    Rule("huggingface", _starting("hf_", then=r"[A-Za-z0-9]{20,}")),
    Rule("langsmith", _starting("lsv2_", "ls__", then=r"[A-Za-z0-9_]{20,}")),
    Rule("logfire", _starting("pylf_", then=r"v[0-9]_[A-Za-z0-9_]{20,}")),
    Rule("tavily", _starting("tvly-", then=r"[A-Za-z0-9-]{16,}")),
    Rule("pinecone", _starting("pcsk_", then=r"[A-Za-z0-9_]{32,}")),
    Rule("cerebras", _starting("csk-", then=r"[A-Za-z0-9]{32,}")),
    Rule("fireworks", _starting("fw_", then=r"[A-Za-z0-9]{20,}")),
    Rule("together", _starting("tgp_v1_", then=r"[A-Za-z0-9_-]{32,}")),
    Rule("jina", _starting("jina_", then=r"[A-Za-z0-9_-]{40,}")),
    Rule(
        "github",
        _starting("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", then=r"[A-Za-z0-9_]{20,}"),
    ),
    Rule("gitlab", _starting("glpat-", then=r"[A-Za-z0-9_-]{20,}")),
    Rule(
        "aws-secret",
        {
            start: re.compile(
                rf"""(?P<before>{start}[A-Z0-9]{{16}}(?:\\[nrt]|[\s,:;|"'\\]){{1,6}})(?=[A-Za-z+/]{{0,39}}[0-9])"""
                r"""[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"""
            )
            for start in ("AKIA", "ASIA")
        },
    ),
    Rule("aws", _starting("AKIA", "ASIA", then=r"[A-Z0-9]{16}(?![A-Za-z0-9_-])")),
    Rule(
        "azure",
        {
            "JQQJ99": re.compile(
                r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}(?![A-Za-z0-9])"
            ),
            "Q~": re.compile(
                r"(?:(?<![\w.~-])|(?<=\\[nrt]))[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}(?![\w.~-])"
            ),
        },
    ),
    Rule(
        "slack",
        {
            **_starting(*(f"xox{kind}-" for kind in "abcdeoprs"), "xapp-", then=r"[A-Za-z0-9%-]{16,}"),
            "hooks.slack.com/": re.compile(
                r"(?P<before>hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9_/-]{10,}"
            ),
        },
    ),
    Rule(
        "stripe",
        _starting("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", then=r"[A-Za-z0-9]{16,}"),
    ),
    Rule("npm", _starting("npm_", then=r"[A-Za-z0-9]{30,}")),
    Rule("pypi", _starting("pypi-", then=r"[A-Za-z0-9_-]{40,}")),
    Rule("sendgrid", _starting("SG.", then=r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    Rule("vault", _starting("hvs.", then=r"[A-Za-z0-9_-]{24,}")),
    Rule("jwt", _starting("eyJ", then=r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")),
    Rule(
        "url-login",
        {
            "://": re.compile(
                r"""(?P<before>://)[^\s/?#:"'<>\\]{0,256}:(?![${<*])"""
                r"""[^\s/"'<>\\]{1,256}(?P<after>@)(?=[\w\[])"""
            )
        },
    ),
    Rule(
        "url-key",
        {
            **_parameter("key", r"(?P<value>[A-Za-z0-9_-]{16,}+)(?![\w./%])"),
            **_parameter("sig", _SIGNATURE),
            "Signature=": re.compile(
                r"(?P<before>Signature=)(?:[0-9a-f]{32,}|(?<=[?&;]Signature=)[A-Za-z0-9%~_+/=-]{40,})"
            ),
        },
        _is_parameter,
    ),
    Rule(
        "command",
        {
            " -u ": re.compile(rf"(?P<before> -u {{1,3}}{_LOGIN}"),
            " --user ": re.compile(rf"(?P<before> --user {{1,3}}{_LOGIN}"),
            " -p": re.compile(rf"(?P<before> -p {{0,3}}{_AFTER_P}"),
        },
        _of_command,
    ),
)
"""In the order they are applied: the special before the general."""


def _after(last: str) -> str:
    """What follows the last character of a prefix, and the prefixes before it."""
    prefixes = [anchor for rule in FORMS for anchor in rule.patterns if anchor[-1] == last]
    return rf"(?=[A-Za-z0-9_%-]{{16}})(?:{'|'.join(f'(?<={re.escape(prefix)})' for prefix in prefixes)})"


FORM_SCREENS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(screen), anchors)
    for screen, anchors in (
        (r"B(?<=-----B)EGIN", r"-----B"),
        (r"/(?<=hooks\.slack\.com/)", r"hooks"),
        (r":(?=//)", r"://"),
        (r"A(?:Iza|KIA|SIA)", r"A"),
        (r"J(?:(?<=eyJ)|QQJ99)", r"eyJ|JQQ"),
        (r"~(?<=[0-9]Q~)", r"Q~"),
        (rf"-(?:(?<=[A-Za-z0-9]-){_after('-')}|(?<= -)(?:p|u |-user ))", r".*-\Z| -"),
        (rf"_{_after('_')}", r".*_\Z"),
        (rf"\.{_after('.')}", r".*\.\Z"),
        (r"=(?:(?<=[?&;6]key=)|(?<=[?&;6]sig=)|(?<=Signature=))[A-Za-z0-9%_~+/=.-]{16}", r".*=\Z"),
    )
)
"""Patterns, one of which every text has that a form is found in, each with the anchors that it looks for.

A pattern starts with one literal character, which `re` finds by memchr: no dearer than a look for a word.
"""
