"""Questions about the text of a file, each noted with its answer, so that a later text can be asked the same.

Most files of a large project are never parsed: a few questions show that they do not matter. What the analysis finds
depends on such a file through the answers alone. As long as a changed text gives the same answers, nothing else
has to be read again. Terminology: a *question* is its kind and its arguments, all of them texts, so that it can be
written down; an answer is a truth value or a tuple, of which a digest is written down.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .chunks import any_chunk_has_both, without_docstrings
from .dotted import absolute_module
from .imports import TextImport, text_imports

if TYPE_CHECKING:
    from ..source.prefilter import Prefilter
    from ..source.reading import SourceFile

Question = tuple[str, ...]
_ANSWER = "_answer_"

_VARYING = re.compile(
    r"\b(?:except\b(?!\s*\(?(?:Import|ModuleNotFound|Attribute)Error\b)[^\n]*:|time\.|random\.|environ\b"
    r"|rand(?:int)?\(|getenv\b|exists\(|is_file\(|is_dir\(|isfile\(|isdir\(|listdir\(|glob\(|signal\."
    r"|perf_counter\(|monotonic\(|isnan\(|isfinite\(|isinf\(|item\(\)|gethostname)"
)
_VARYING_WORDS = (
    *("except", "time.", "random.", "environ", "rand", "getenv", "exists(", "is_file(", "is_dir(", "isfile("),
    *("isdir(", "listdir(", "glob(", "signal.", "perf_counter(", "monotonic(", "isnan(", "isfinite("),
    *("isinf(", "item()", "gethostname"),
)
"""One of these stands wherever the pattern matches; looking for them is cheap."""
_WORD = re.compile(rb"[A-Za-z_]\w*")
_QUOTED = re.compile(rb"[\"']([A-Za-z_]\w*)[\"']")
_STAR = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*\(?[ \t]*\*", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\.([A-Za-z_]\w*)")


class Asked:
    """One file's text behind the questions; ``answers`` has those that were asked."""

    def __init__(
        self,
        source: SourceFile,
        name: str,
        is_package: bool,
        prefilter: Prefilter,
        top_level: frozenset[str],
    ) -> None:
        self.answers: dict[Question, Any] = {}
        self.source = source
        self._name = name
        self._is_package = is_package
        self._prefilter = prefilter
        self._top_level = top_level
        self._words: frozenset[str] | None = None

    def is_marked(self) -> bool:
        """Whether the text has a marker (see ``prefilter``)."""
        return bool(self.ask("marked"))

    def contains(self, word: bytes) -> bool:
        """Whether a word stands anywhere in the text."""
        return bool(self.ask("contains", word.decode("latin-1")))

    def matches(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether a pattern matches anywhere in the text."""
        return bool(self.ask("matches", pattern.pattern.decode("latin-1"), str(pattern.flags)))

    def imports(self) -> Sequence[TextImport]:
        """The imports of the text that lead, or may lead, to linted files (see ``text_imports``)."""
        found: Sequence[TextImport] = self.ask("imports")
        return found

    def chains(self, local: str) -> Sequence[str]:
        """The attribute chains that follow a name in the text: ``.comm.barrier``."""
        found: Sequence[str] = self.ask("chains", local)
        return found

    def words_among(self, names: Sequence[str]) -> Sequence[str]:
        """Those of the names that stand behind a dot."""
        found: Sequence[str] = self.ask("words", *names)
        return found

    def meets(self, uses: str, differing_uses: str) -> bool:
        """Whether some function of the text both has a match of ``uses`` and holds a value that can differ."""
        return bool(self.ask("meets", uses, differing_uses))

    def stars(self) -> Sequence[str]:
        """The absolute names of the modules that the stars of the text import from."""
        found: Sequence[str] = self.ask("stars")
        return found

    def offered(self, names: Sequence[str]) -> Sequence[str]:
        """Those of the names that a star import of this file could bind, as far as its own text tells."""
        found: Sequence[str] = self.ask("offered", *names)
        return found

    def words_offered(self) -> frozenset[str]:
        """All of them; what the analysis does with them is to be asked as ``offered``."""
        content = self.source.content
        pattern = _QUOTED if b"__all__" in content else _WORD
        return frozenset(
            sys.intern(word.decode("utf-8", "replace")) for word in set(pattern.findall(content))
        )

    def ask(self, *question: str) -> Any:
        """The answer to a question; remembered."""
        if question not in self.answers:
            self.answers[question] = getattr(self, _ANSWER + question[0])(*question[1:])
        return self.answers[question]

    def agrees(self, answers: Mapping[Question, str]) -> bool:
        """Whether this text gives the answers to some questions whose digests another has left."""
        return all(digest(self.ask(*question)) == answer for question, answer in answers.items())

    def forget_words(self) -> None:
        """Let go of what is only kept between questions: the words of all files would fill the memory."""
        self._words = None

    def _answer_marked(self) -> bool:
        return self._prefilter.matches(self.source.content)

    def _answer_contains(self, word: str) -> bool:
        return word.encode("latin-1") in self.source.content

    def _answer_matches(self, pattern: str, flags: str) -> bool:
        return re.search(pattern.encode("latin-1"), self.source.content, int(flags)) is not None

    def _answer_imports(self) -> tuple[TextImport, ...]:
        found = text_imports(self.source.content, self._name, self._is_package)
        return tuple(one for one in found if one.target.partition(".")[0] in self._top_level)

    def _answer_chains(self, local: str) -> tuple[str, ...]:
        text = self.source.text
        found: set[str] = set()
        for match in re.finditer(rf"{re.escape(local)}((?:\.\w+)+)", text):
            before = text[match.start() - 1 : match.start()]
            if not (before.isalnum() or before in ("_", ".")) or not before:
                found.add(match[1])
        return tuple(sorted(found))

    def _answer_words(self, *names: str) -> tuple[str, ...]:
        if self._words is None:
            self._words = frozenset(_ATTRIBUTE.findall(self.source.text))
        return tuple(name for name in names if name in self._words)

    def _answer_stars(self) -> tuple[str, ...]:
        content = self.source.content
        found = _STAR.findall(content) if b"*" in content else ()
        return tuple(
            absolute_module(written.decode(), len(dots), self._name, self._is_package)
            for dots, written in found
        )

    def _answer_offered(self, *names: str) -> tuple[str, ...]:
        own = self.words_offered()
        return tuple(name for name in names if name in own)

    def _answer_meets(self, uses: str, differing_uses: str) -> bool:
        reaching, helpers = re.compile(uses), re.compile(differing_uses or "$^")

        def differs(chunk: str) -> bool:
            own = any(word in chunk for word in _VARYING_WORDS) and _VARYING.search(chunk) is not None
            return own or helpers.search(chunk) is not None

        text = without_docstrings(self.source.text)
        if reaching.search(text) is None or not differs(text):
            return False
        return any_chunk_has_both(text, lambda chunk: reaching.search(chunk) is not None, differs)


KINDS = frozenset(name.removeprefix(_ANSWER) for name in vars(Asked) if name.startswith(_ANSWER))
"""The kinds of questions that there are."""


def digest(answer: Any) -> str:
    """What stands for an answer where it is written down."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return hashlib.blake2b(repr(answer).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
