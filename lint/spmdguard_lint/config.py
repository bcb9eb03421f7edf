"""The linter's settings: ``[tool.spmdguard.lint]`` of the nearest pyproject.toml, then the command line.

Terminology: a *selector* is a rule code, a rule name, the beginning of codes (``SPG1``) or ``ALL``; inside
``Config`` selectors are beginnings of codes, ``ALL`` being the empty one. Every mistake is a ``ConfigError``
that says where it stands and what to write instead: a setting without effect would be a silent miss.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spmdguard_lint.model import CERTAINTY_ORDER, Certainty, Status
from spmdguard_lint.rules import registry
from spmdguard_lint.source.discovery import DEFAULT_EXCLUDE, Exclusion, matches_glob

TABLE = "[tool.spmdguard.lint]"


class ConfigError(Exception):
    """A setting that cannot be: ``problem`` in one line, ``where`` it stands, and what to ``do``."""

    def __init__(self, problem: str, where: str, do: str) -> None:
        super().__init__(problem, where, do)
        self.problem = problem
        self.where = where
        self.do = do

    def __str__(self) -> str:
        return f"{self.problem}\n  where: {self.where}\n  do:    {self.do}"


@dataclass(frozen=True)
class Config:
    """All settings of one run. Name lists hold dotted names such as ``mypkg.comm.sync_metrics``."""

    select: tuple[str, ...] = ("",)
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    rank_sources: tuple[str, ...] = ()
    uniform_functions: tuple[str, ...] = ()
    rank_local: tuple[str, ...] = ()
    preview: bool = False
    min_certainty: Certainty = "likely"
    respect_gitignore: bool = True
    force_exclude: bool = False
    merged: tuple[str, ...] = ()
    root: Path = field(default_factory=Path.cwd)
    source: Path | None = None

    @property
    def exclusion(self) -> Exclusion:
        """What discovery leaves out."""
        patterns = self.exclude + self.extend_exclude
        return Exclusion(self.root, patterns, self.respect_gitignore, self.force_exclude)

    def looks_for(self, code: str, status: Status) -> bool:
        """Whether a finding of ``code`` could be reported.

        The longest selector that fits decides; between equals ``ignore`` does. A preview rule needs
        ``preview`` or its full code.
        """
        ignored = _longest(self.ignore, code)
        if code in registry.ALWAYS_REPORTED:
            return ignored is None
        selected = _longest(self.select + self.extend_select, code)
        if selected is None or (ignored is not None and len(ignored) >= len(selected)):
            return False
        return status == "stable" or self.preview or selected == code

    def is_named(self, code: str) -> bool:
        """Whether a selector beyond ``ALL`` picks ``code``: then its advice (``info``) shows too."""
        return bool(_longest(self.select + self.extend_select, code))

    def ignores_in_file(self, code: str, filename: str) -> bool:
        """Whether ``per-file-ignores`` silences ``code`` in the file."""
        return any(
            _longest(selectors, code) is not None and matches_glob(glob, filename, self.root)
            for glob, selectors in self.per_file_ignores
        )

    def shows(self, certainty: Certainty) -> bool:
        """Whether ``certainty`` is at least ``min_certainty``."""
        return CERTAINTY_ORDER[certainty] <= CERTAINTY_ORDER[self.min_certainty]


def _longest(selectors: Sequence[str], code: str) -> str | None:
    return max((s for s in selectors if code.startswith(s)), key=len, default=None)


def load_config(paths: Sequence[str | Path], *, file: Path | None = None, isolated: bool = False) -> Config:
    """The settings for ``paths``: those of ``file``, or of the nearest pyproject.toml that has any."""
    if isolated:
        return Config()
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"no such file: {file}", "--config", "name a TOML file with a table " + TABLE)
        return parse_config(_read_toml(file), file)
    for folder in _folders_up(_common_folder(paths)):
        candidate = folder / "pyproject.toml"
        if candidate.is_file():
            data = _read_toml(candidate)
            if "spmdguard" in _table(data, "tool", str(candidate)):
                return parse_config(data, candidate)
        if (folder / ".git").exists():
            break
    return Config()


def _common_folder(paths: Sequence[str | Path]) -> Path:
    absolute = [Path(path).absolute() for path in paths]
    try:
        common = Path(os.path.normpath(os.path.commonpath(absolute or [Path.cwd()])))
    except ValueError:  # different drives
        common = Path.cwd()
    return common if common.is_dir() else common.parent


def _folders_up(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def _read_toml(path: Path) -> dict[str, Any]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        with path.open("rb") as file:
            data: dict[str, Any] = toml.load(file)
            return data
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        do = "correct the file, or pass --isolated"
        raise ConfigError(f"not valid TOML: {error}", str(path), do) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(path), "make it readable") from error


def parse_config(data: Mapping[str, Any], path: Path) -> Config:
    """The settings in the parsed TOML ``data``; relative globs are relative to the folder of ``path``."""
    ours = _table(_table(data, "tool", str(path)), "spmdguard", str(path))
    for key in ours:
        if key in _READERS:
            problem = f"`{key}` is no setting of [tool.spmdguard]"
            raise ConfigError(problem, str(path), f"move it below {TABLE}, where it is one")
    where = f"{path}, {TABLE}"
    settings: dict[str, Any] = {}
    for key, value in _table(ours, "lint", str(path)).items():
        if key not in _READERS:
            raise ConfigError(f"unknown setting `{key}`", where, _did_you_mean(key, list(_READERS)))
        settings[key.replace("-", "_")] = _READERS[key](value, f"{where}, `{key}`")
    settings["merged"] = merged_selectors(_table(ours, "lint", str(path)))
    return Config(**settings, root=path.parent.absolute(), source=path)


def with_options(config: Config, options: Mapping[str, Any]) -> Config:
    """``config`` overruled by the command line, where a value other than None or False was given.

    ``--select`` starts afresh; ``--ignore``, ``--extend-select`` and ``--exclude`` add to what stands there.
    """
    given = {key: value for key, value in options.items() if value not in (None, False)}
    if "select" in given:
        config = replace(config, select=selectors(given["select"], "--select"), ignore=(), extend_select=())
    changes: dict[str, Any] = {
        "ignore": config.ignore + selectors(given.get("ignore", []), "--ignore"),
        "extend_select": config.extend_select + selectors(given.get("extend_select", []), "--extend-select"),
        "extend_exclude": config.extend_exclude + tuple(given.get("exclude", ())),
        "preview": config.preview or "preview" in given,
        "force_exclude": config.force_exclude or "force_exclude" in given,
        "min_certainty": given.get("min_certainty", config.min_certainty),
        "merged": tuple(sorted({*config.merged, *merged_selectors(given)})),
    }
    return replace(config, **changes)


def selectors(texts: Any, where: str) -> tuple[str, ...]:
    """Selectors as beginnings of codes; a ``ConfigError`` names the one that picks no rule.

    The code of a merged rule picks those that it went to.
    """
    found: list[str] = []
    for text in _strings(texts, where):
        upper = text.upper()
        if upper == "ALL":
            found.append("")
        elif upper and any(code.startswith(upper) for code in registry.codes()):
            found.append(upper)
        elif codes := registry.codes_of(text):
            found.extend(codes)
        else:
            names = [*registry.codes(), *registry.codes().values()]
            raise ConfigError(f"no rule has the code `{text}`", where, _did_you_mean(text, names))
    return tuple(found)


def merged_selectors(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The codes of merged rules that selectors name: they do what is meant, and a note says what that is."""
    found: set[str] = set()
    for key in ("select", "ignore", "extend-select", "extend_select"):
        found.update(code for text in settings.get(key, ()) if (code := registry.merged_code(text)))
    for texts in settings.get("per-file-ignores", {}).values():
        found.update(code for text in texts if (code := registry.merged_code(text)))
    return tuple(sorted(found))


def _did_you_mean(word: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word.replace("_", "-"), known, n=1) or difflib.get_close_matches(
        word.upper(), known, n=1
    )
    if close:
        return f"did you mean `{close[0]}`?"
    if "select" in known:
        return "the settings are " + ", ".join(sorted(known))
    return "`spmdguard rule --all` lists every rule"


def _table(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{key}` is {value!r}, no table", where, "write the settings below " + TABLE)
    return value


def _strings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"expected a list of strings, saw {value!r}", where, 'write it like ["one", "two"]')
    return tuple(value)


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        do = "write true or false, without quotes"
        raise ConfigError(f"expected true or false, saw {value!r}", where, do)
    return value


def _certainty(value: Any, where: str) -> Certainty:
    for certainty in ("definite", "likely", "possible"):
        if value == certainty:
            return certainty
    raise ConfigError(f"{value!r} is no certainty", where, 'write "definite", "likely" or "possible"')


def _names(value: Any, where: str) -> tuple[str, ...]:
    names = _strings(value, where)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigError(f"`{name}` is no dotted name", where, 'write it like "mypkg.comm.sync_metrics"')
    return names


def _per_file(value: Any, where: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        do = 'write it like {"tests/**" = ["SPG101"]}'
        raise ConfigError(f"expected a table, saw {value!r}", where, do)
    return tuple((glob, selectors(codes, f"{where}, `{glob}`")) for glob, codes in value.items())


_READERS = {
    "select": selectors,
    "ignore": selectors,
    "extend-select": selectors,
    "per-file-ignores": _per_file,
    "exclude": _strings,
    "extend-exclude": _strings,
    "collectives": _names,
    "rank-sources": _names,
    "uniform-functions": _names,
    "rank-local": _names,
    "preview": _boolean,
    "min-certainty": _certainty,
    "respect-gitignore": _boolean,
    "force-exclude": _boolean,
}
