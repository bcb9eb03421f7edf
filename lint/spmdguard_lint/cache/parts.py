"""Results of the parts of earlier runs, each with what it depends on, so that a change costs no more than its part.

A part (see ``names.parts``) is found again where its files are the same, in the same places, under the same settings,
and each of them either has the same bytes, or was only asked some questions then (see ``names.asked``) and gives the
same answers now. All parts of a run over the same paths are kept together, in place of those of the run before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Config
from ..model import Finding
from ..names.asked import KINDS, Question, digest
from .encoding import decode, encode
from .keys import digest_of, key_of, settings_of
from .store import Cache

if TYPE_CHECKING:
    from ..names.project import Project


@dataclass(frozen=True)
class KeptText:
    """A file as it was: the digest of its bytes, and the answers it gave; None where it was read."""

    content: str
    answers: Mapping[Question, str] | None


@dataclass(frozen=True)
class KeptPart:
    """What was found in a part, and what that depends on.

    ``problems`` are those of files that the analysis did not parse; each depends on its own file alone.
    """

    frame: str
    texts: tuple[KeptText, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Finding, ...]


@dataclass(frozen=True)
class FoundPart(KeptPart):
    """The same, found again; of ``changed`` files it is not known what the parser says of them now."""

    changed: frozenset[str]


class PartResults:
    """The parts of the run before over the same paths, and those of this one."""

    def __init__(self, cache: Cache, paths: Sequence[str | Path], config: Config) -> None:
        self.num_found = 0
        self._cache = cache
        self._settings = settings_of(config)
        self._name = key_of("parts", *self._settings, *(str(Path(path).absolute()) for path in paths))
        self._known = {part.frame: part for part in _from_json(cache.read(self._name))}
        self._new: list[KeptPart] = []

    def find(self, part: Project) -> FoundPart | None:
        """What an earlier analysis of a part has found, if that holds still."""
        known = self._known.get(self._frame(part))
        if known is None:
            return None
        changed: set[str] = set()
        texts: list[KeptText] = []
        for module, text in zip(part.all_modules, known.texts, strict=True):
            content = digest_of(module.asked.source.content)
            if content != text.content:
                if text.answers is None or not module.asked.agrees(text.answers):
                    return None
                changed.add(module.filename)
            texts.append(KeptText(content, text.answers))
        problems = tuple(one for one in known.problems if one.site.filename not in changed)
        return FoundPart(known.frame, tuple(texts), known.findings, problems, frozenset(changed))

    def add(self, part: Project, findings: Iterable[Finding], problems: Iterable[Finding]) -> None:
        """Keep what an analysis of a part has found."""
        part.note_questions()
        texts = (
            KeptText(
                digest_of(module.asked.source.content),
                None if module.is_read else {q: digest(a) for q, a in module.asked.answers.items()},
            )
            for module in part.all_modules
        )
        self._new.append(KeptPart(self._frame(part), tuple(texts), tuple(findings), tuple(problems)))

    def add_again(self, found: FoundPart, problems: Iterable[Finding]) -> None:
        """Keep what was found again, with the problems as they are now."""
        self.num_found += len(found.texts)
        self._new.append(KeptPart(found.frame, found.texts, found.findings, tuple(problems)))

    def save(self) -> None:
        """Write the parts of this run in place of those before."""
        self._cache.write(self._name, _to_json(self._new))

    def _frame(self, part: Project) -> str:
        names = (module.filename for module in part.all_modules)
        return key_of(*self._settings, *names, *map(repr, part.places))


def _to_json(parts: Sequence[KeptPart]) -> dict[str, Any]:
    numbers: dict[Question, int] = {}

    def numbered(answers: Mapping[Question, str]) -> list[list[Any]]:
        return [[numbers.setdefault(question, len(numbers)), answer] for question, answer in answers.items()]

    encoded = [
        {
            "frame": part.frame,
            "texts": [
                [text.content, None if text.answers is None else numbered(text.answers)]
                for text in part.texts
            ],
            "findings": [encode(finding) for finding in part.findings],
            "problems": [encode(finding) for finding in part.problems],
        }
        for part in parts
    ]
    return {"questions": list(numbers), "parts": encoded}


def _from_json(data: Any) -> list[KeptPart]:
    """The parts that were written; none where the data has any other form."""
    try:
        questions = [tuple(map(str, question)) for question in data["questions"]]
        if not all(question[0] in KINDS for question in questions):
            return []
        return [
            KeptPart(
                str(part["frame"]),
                tuple(
                    KeptText(
                        str(content), None if answers is None else {questions[n]: str(a) for n, a in answers}
                    )
                    for content, answers in part["texts"]
                ),
                tuple(map(decode, part["findings"])),
                tuple(map(decode, part["problems"])),
            )
            for part in data["parts"]
        ]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return []
