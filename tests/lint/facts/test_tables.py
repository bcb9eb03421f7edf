"""The tables are consistent: words of the vocabulary, types that exist, aliases that lead somewhere."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import spmdguard_lint.facts
from spmdguard_lint.facts import lookup
from spmdguard_lint.facts.events import EVENTS
from spmdguard_lint.facts.fact import VARYING_KINDS
from spmdguard_lint.facts.tables import _FAMILIES, _PLAIN

from .walk import every_fact, tables

FOLDER = Path(spmdguard_lint.facts.__file__).parent
FAMILY_FILES = sorted({f for families in [*_FAMILIES.values(), _PLAIN] for f in families})
RESULTS = {"uniform", "pure", "varying", "receiver", "arg0", "args"}
WRAPS = {"", "decorator", "context", "call", "thread", "search", "spawn", "handler"}


def test_every_word_is_of_the_vocabulary() -> None:
    """Kinds, results, reasons of variance, uses, certainties and events are the documented ones."""
    wrong = []
    for name, fact in every_fact():
        right = (
            fact.kind in ("", "collective", "lifecycle", "point-to-point", "request")
            and fact.result in RESULTS
            and fact.main_only in ("", "main", "local_main", "last", "one")
            and fact.wraps in WRAPS
            and fact.certainty in ("definite", "likely", "possible")
            and (not fact.event or fact.event in EVENTS)
        )
        if not right:
            wrong.append(name)
    assert wrong == []


def test_variance_has_a_reason_exactly_when_the_result_varies() -> None:
    """A varying result names one of the kinds; any other result names none."""
    wrong = [
        name
        for name, fact in every_fact()
        if (fact.varying in VARYING_KINDS) != (fact.result == "varying") or (fact.varying and not fact.result)
    ]
    assert wrong == []


def test_operation_and_kind_come_together() -> None:
    """A fact has a name in the trace exactly when it communicates."""
    assert [name for name, fact in every_fact() if bool(fact.op) != bool(fact.kind)] == []


def test_every_event_of_the_list_is_used() -> None:
    """The list of events holds no word that no table uses."""
    assert set() == set(EVENTS) - {fact.event for _, fact in every_fact()}


def test_every_type_named_is_known() -> None:
    """What a fact returns, a type derives from and a hook receives has an entry of its own."""
    known = tables()
    named = {fact.returns for _, fact in every_fact()} | {t for _, f in every_fact() for t in f.items}
    for facts in known.types.values():
        named |= set(facts.bases) | {t for types in facts.hooks.values() for t in types}
    for _, _, type_name in known.class_patterns:
        named.add(type_name)
    assert set() == named - {"", "data"} - set(known.types)


def test_every_alias_leads_to_known_names() -> None:
    """An alias ends at a canonical entry or at a package that has some, and is no entry itself."""
    known = tables()
    names = {*known.functions, *known.types, *known.constants}
    lost = [
        alias
        for alias, target in {**known.aliases, **known.prefixes}.items()
        if (end := lookup.canonical(target.rstrip(".")) or target) not in names
        and target
        and not any(name.startswith(end + ".") for name in names)
    ]
    assert lost == []
    assert set() == names & set(known.aliases)


def test_canonical_is_idempotent() -> None:
    """The canonical form of a canonical name is itself, for entries and for what aliases lead to."""
    known = tables()
    for name in (*known.functions, *known.types, *known.constants):
        assert name == lookup.canonical(name)
    for alias in known.aliases:
        once = lookup.canonical(alias)
        assert once == lookup.canonical(once)


@pytest.mark.parametrize("family", FAMILY_FILES)
def test_no_key_stands_twice(family: str) -> None:
    """No dict of a family has the same key twice: the second would silently replace the first."""
    twice = []
    for node in ast.walk(ast.parse((FOLDER / f"{family}.py").read_text())):
        if isinstance(node, ast.Dict):
            keys = [ast.unparse(key) for key in node.keys if key is not None]
            twice += sorted({key for key in keys if keys.count(key) > 1})
    assert twice == []


def test_no_name_stands_in_two_families() -> None:
    """A name has one home."""
    homes: dict[str, list[str]] = {}
    for family in FAMILY_FILES:
        module = __import__(f"spmdguard_lint.facts.{family}", fromlist=["FUNCTIONS"])
        for table in ("FUNCTIONS", "TYPES", "CONSTANTS", "ALIASES"):
            for name in getattr(module, table, {}):
                homes.setdefault(f"{table} {name}", []).append(family)
    assert {name: families for name, families in homes.items() if len(families) > 1} == {}


def test_every_name_is_read_by_its_own_root() -> None:
    """Asking for a name reads the family that holds it, whatever was asked before."""
    wrong = []
    for family in FAMILY_FILES:
        module = __import__(f"spmdguard_lint.facts.{family}", fromlist=["FUNCTIONS"])
        names = [n for t in ("FUNCTIONS", "TYPES", "CONSTANTS", "ALIASES") for n in getattr(module, t, {})]
        names += list(getattr(module, "PREFIXES", {}))
        names += [prefix for prefix, *_ in getattr(module, "CLASS_PATTERNS", ())]
        wrong += [n for n in names if family not in _FAMILIES.get(n.partition(".")[0], _PLAIN)]
    assert wrong == []


def test_every_family_file_is_reachable() -> None:
    """A module with tables is listed as the family of some root."""
    with_tables = {
        path.stem
        for path in FOLDER.glob("*.py")
        if path.stem not in ("tables", "lookup") and "\nFUNCTIONS:" in path.read_text()
    }
    assert set(FAMILY_FILES) == with_tables


def test_looking_up_imports_neither_torch_nor_frameworks() -> None:
    """Reading every table imports nothing of what the tables talk about."""
    program = (
        "import sys\n"
        "from spmdguard_lint.facts import lookup, tables\n"
        "tables.TABLES.need_all()\n"
        "lookup.function('torch.distributed.all_reduce')\n"
        "print(sorted({'torch', 'accelerate', 'libcst', 'rich', 'click', 'spmdguard'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("[]\n", 0)


def test_importing_the_lookup_reads_no_family() -> None:
    """Start-up does not pay for a table before a name of it is asked for."""
    program = (
        "import sys\n"
        "from spmdguard_lint.facts import lookup\n"
        f"families = {FAMILY_FILES!r}\n"
        "read = lambda: [f for f in families if 'spmdguard_lint.facts.' + f in sys.modules]\n"
        "print(read())\n"
        "lookup.function('accelerate.Accelerator')\n"
        "print(read())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["[]", "['accelerate']"]
