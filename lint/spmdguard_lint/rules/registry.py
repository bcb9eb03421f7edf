"""Which rules there are, found from the rule files themselves.

Terminology: a *rule file* is ``spg102_early_exit_past_collective.py`` (or ``meta_901_...`` for a rule that
the engine applies); its name holds code and name, its docstring is the rule's page, ``RULE`` its description
and ``check(analysis)`` the rule. Codes and names are read from the file names, so a rule is imported only
where its page, its status or its check is asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from spmdguard_lint.model import Applicability, Finding, RuleInfo, Severity, Status

Check = Callable[[Any], Iterable[Finding]]

URL_BASE = "https://github.com/spmdguard/spmdguard/blob/main/docs/rules/"
ALWAYS_REPORTED = frozenset({"SPG903", "SPG904"})

# Rules that users could not tell apart from others: code -> (name, the rules that report it now).
MERGED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "SPG502": ("collective-save-on-main-only", ("SPG101", "SPG104")),
    "SPG604": ("barrier-on-emergency-path", ("SPG206",)),
}

_RULE_FILE = re.compile(r"(?:spg|meta_)(\d{3})_(\w+)$")
_CODE = re.compile(r"SPG\d{3}$")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*$")


def rule(
    *,
    code: str,
    name: str,
    severity: Severity,
    status: Status,
    page: str | None,
    fix: Applicability | None = None,
) -> RuleInfo:
    """Describe a rule; ``page`` is its docstring (None under ``python -OO``), headed ``# name (CODE)``.

    ``fix`` declares that ``fixes/spgNNN.py`` can mend findings of the rule, at best safely or never so.
    """
    if not _CODE.match(code):
        raise ValueError(f"code={code!r}: expected SPG and three digits, like SPG102")
    if not _NAME.match(name):
        raise ValueError(f"name={name!r}: expected lower-case words joined by hyphens, like early-exit")
    text = (page or "").strip()
    title = f"# {name} ({code})"
    if text and text.splitlines()[0] != title:
        raise ValueError(f"page of {code} starts with {text.splitlines()[0]!r}: expected {title!r}")
    return RuleInfo(code, name, _summary(text), severity, status, text + "\n", fix)


@cache
def codes() -> Mapping[str, str]:
    """Every rule's name by its code, in the order of the codes; imports no rule."""
    return {code: name for code, (name, _) in sorted(_rule_files().items())}


def all_rules() -> tuple[RuleInfo, ...]:
    """Every rule's description, in the order of the codes."""
    return tuple(info for code in codes() if (info := rule_for(code)) is not None)


@cache
def rule_for(code: str) -> RuleInfo | None:
    """The description of the rule ``code``, or None where there is none."""
    if code not in _rule_files():
        return None
    module = _module(code)
    info = module.RULE
    if not isinstance(info, RuleInfo) or (info.code, info.name) != (code, codes()[code]):
        expected = f"expected code {code} and name {codes()[code]}"
        raise ValueError(f"{module.__name__}: RULE is {info!r}: {expected}")
    return info


def checks() -> Iterator[tuple[RuleInfo, Check]]:
    """Every rule that reads the analysis, with its check; imports them all."""
    for info in all_rules():
        check = getattr(_module(info.code), "check", None)
        if check is not None:
            yield info, check


def code_of(text: str) -> str | None:
    """The code meant by ``text``, a code in any case or a rule's name; None where it is neither."""
    if text.upper() in codes():
        return text.upper()
    return next((code for code, name in codes().items() if name == text), None)


def codes_of(text: str) -> tuple[str, ...]:
    """The codes meant by ``text``: its own, or those that a merged rule went to; empty where there is none."""
    merged = merged_code(text)
    if merged is not None:
        return MERGED[merged][1]
    code = code_of(text)
    return (code,) if code is not None else ()


def merged_code(text: str) -> str | None:
    """The code of the merged rule that ``text`` names by code or name."""
    if text.upper() in MERGED:
        return text.upper()
    return next((code for code, (name, _) in MERGED.items() if name == text), None)


def merged_into(code: str) -> Iterator[tuple[str, str]]:
    """Code and name of the merged rules that the rule ``code`` reports now."""
    return ((merged, name) for merged, (name, targets) in MERGED.items() if code in targets)


def title(text: str) -> str:
    """Code and name of the rule meant by ``text``, as messages name it."""
    code = merged_code(text) or code_of(text) or text
    return f"{code} ({MERGED[code][0] if code in MERGED else codes()[code]})"


def merge_note(code: str) -> str:
    """Where a merged rule went, in one sentence."""
    name, targets = MERGED[code]
    return f"{code} ({name}) is reported as {' and '.join(targets)}"


def url_of(code: str) -> str:
    """Where the rule's page can be read."""
    return f"{URL_BASE}{code}.md"


@cache
def _rule_files() -> dict[str, tuple[str, str]]:
    """Name and module of every rule by its code."""
    from spmdguard_lint import rules

    found: dict[str, tuple[str, str]] = {}
    for module in pkgutil.iter_modules(rules.__path__):
        match = _RULE_FILE.match(module.name)
        if match:
            found[f"SPG{match[1]}"] = (match[2].replace("_", "-"), f"{rules.__name__}.{module.name}")
    return found


@cache
def _module(code: str) -> ModuleType:
    return importlib.import_module(_rule_files()[code][1])


def _summary(page: str) -> str:
    """The first sentence under ``## What it does``."""
    _, _, body = page.partition("## What it does\n")
    paragraph = " ".join(body.strip().split("\n\n")[0].split())
    sentence = re.match(r".*?[.!?](?=\s|$)", paragraph)
    return sentence[0] if sentence else paragraph
