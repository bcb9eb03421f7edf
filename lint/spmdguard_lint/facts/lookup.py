"""What the tables know: facts by qualified name, by type and method, by environment variable.

Terminology: a *qualified name* is dotted from the top package (``torch.distributed.all_reduce``); its
*canonical* form is the one that the tables use; an *alias* is another way to import the same thing. A *type*
is named by the canonical name of its class. Positional indices never count the receiver.

Cost: a look-up is a few dict reads; canonical names are memoised.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache

from . import conventions
from .build import agreed
from .fact import Fact, TypeFacts
from .markers import MARKERS
from .tables import TABLES

BACKWARD = agreed("backward", event="backward")
"""``loss.backward()`` when the loss was computed by a module whose forward has event "synced-forward"."""

ONE_PROCESS_HOOKS = conventions.ONE_PROCESS_HOOKS
DECIDING_HOOKS = conventions.EPOCH_ENDS | conventions.SETTING_UP
"""The hooks of which some fact says that it communicates only there (``Fact.during``)."""

_canonical: dict[str, str] = {}
_loose: dict[str, dict[str, str]] = {}
_MAX_MEMO = 50_000

_UNSET_AT_FIRST = frozenset({"wandb.run", "wandb.config"})


def canonical(qualname: str) -> str:
    """The name that the tables use for ``qualname``; the name itself when they do not know it."""
    known = _canonical.get(qualname)
    if known is None:
        if len(_canonical) >= _MAX_MEMO:
            _canonical.clear()
        known = _canonical[qualname] = _find_canonical(qualname)
    return known


def _find_canonical(name: str) -> str:
    for _ in range(4):  # an alias may lead to an alias
        TABLES.need(name.partition(".")[0])
        if name in TABLES.functions or name in TABLES.types or name in TABLES.constants:
            return name
        following = TABLES.aliases.get(name) or _by_prefix(name)
        if following is None or following == name:
            break
        name = following
    return _by_last_segment(name) or name


def _by_prefix(name: str) -> str | None:
    """Longest alias of a leading part: a package, or a class whose member is meant."""
    end = name.rfind(".")
    while end > 0:
        head = name[:end]
        if head in TABLES.aliases:
            return TABLES.aliases[head] + name[end:]
        target = TABLES.prefixes.get(head + ".")
        if target is not None:
            there = target.startswith(head + ".") and (name + ".").startswith(target)
            return None if there else target + name[end + 1 :]
        end = name.rfind(".", 0, end)
    return None


def _by_last_segment(name: str) -> str | None:
    """Re-exports inside one framework: ``accelerate.accelerator.Accelerator``."""
    root = next((r for r in TABLES.loose_roots if name.startswith(r)), None)
    if root is None:
        return None
    parts = name[len(root) :].split(".")
    index = _loose.get(root) or _loose.setdefault(root, _index_root(root))
    for place in range(len(parts)):
        if parts[place][:1].isupper():  # a class: its members keep their place below it
            found = index.get(parts[place])
            return ".".join([found, *parts[place + 1 :]]) if found else None
    return index.get(parts[-1])


def _index_root(root: str) -> dict[str, str]:
    """Last segment -> canonical name, for the names below ``root`` whose last segment is unique there."""
    index: dict[str, str] = {}
    ambiguous: set[str] = set()
    for name in (*TABLES.functions, *TABLES.types):
        if name.startswith(root):
            last = name.rpartition(".")[2]
            if index.setdefault(last, name) != name:
                ambiguous.add(last)
    return {last: name for last, name in index.items() if last not in ambiguous}


def function(qualname: str) -> Fact | None:
    """The fact on calling ``qualname``: a function, a constructor with an effect, or ``Class.method``."""
    name = canonical(qualname)
    fact = TABLES.functions.get(name)
    if fact is not None:
        return fact
    owner, _, last = name.rpartition(".")
    if owner:
        type_name = constructor(owner)
        if type_name is not None:
            return method(type_name, last)
    if last[:1].isupper():  # a class without an entry: making an instance does nothing that is known
        return None
    return next((fact for prefix, fact in TABLES.prefix_facts if name.startswith(prefix)), None)


def constant(qualname: str) -> Fact | None:
    """The fact on a module-level value that is read, not called (``torch.distributed.group.WORLD``)."""
    return TABLES.constants.get(canonical(qualname))


@lru_cache(maxsize=_MAX_MEMO)
def constructor(qualname: str) -> str | None:
    """The type of the instance that calling ``qualname`` makes, or None."""
    name = canonical(qualname)
    if name in TABLES.types:
        return name
    fact = TABLES.functions.get(name)
    if fact is not None and fact.returns and not fact.async_handle:
        returned = canonical(fact.returns)
        if returned in TABLES.types:
            return returned
    last = name.rpartition(".")[2]
    if last[:1].isupper():
        for prefix, suffix, type_name in TABLES.class_patterns:
            if name.startswith(prefix) and name.endswith(suffix):
                return type_name
    return None


def type_facts(type_name: str) -> TypeFacts | None:
    """Everything known about a type."""
    name = constructor(type_name)
    return TABLES.types.get(name) if name is not None else None


@lru_cache(maxsize=_MAX_MEMO)
def lineage(type_name: str) -> tuple[TypeFacts, ...]:
    """The type's own facts, then those of its known bases, nearest first."""
    found: list[TypeFacts] = []
    queue = [type_name]
    seen: set[str] = set()
    while queue:
        name = constructor(queue.pop(0))
        if name is None or name in seen:
            continue
        seen.add(name)
        facts = TABLES.types[name]
        found.append(facts)
        queue.extend(facts.bases)
    return tuple(found)


def communicates(type_name: str) -> bool:
    """Whether some method of a type communicates; a tensor's class says less than what is known of its value."""
    tensor = type_name.endswith("Tensor")
    return not tensor and any(fact.op for facts in lineage(type_name) for fact in facts.methods.values())


def method(type_name: str, method: str) -> Fact | None:
    """The fact on ``instance.method(...)``."""
    for facts in lineage(type_name):
        fact = facts.methods.get(method, facts.other)
        if fact is not None:
            return fact
    return None


def attribute(type_name: str, attr: str) -> Fact | None:
    """The fact on reading ``instance.attr``."""
    return next((facts.attributes[attr] for facts in lineage(type_name) if attr in facts.attributes), None)


def call_instance(type_name: str) -> Fact | None:
    """The fact on calling an instance: a module's forward, a metric's update."""
    return next((facts.call for facts in lineage(type_name) if facts.call is not None), None)


def iterate_instance(type_name: str) -> Fact | None:
    """The fact on the items of ``for x in instance``; event "uniform-count": every rank gets as many."""
    return next((facts.iterate for facts in lineage(type_name) if facts.iterate is not None), None)


def is_sharded(type_name: str) -> bool:
    """Whether the type's parameters and state are spread over the ranks (``Fact.when_sharded``)."""
    return any(facts.sharded for facts in lineage(type_name))


def subclass_method(base_types: Iterable[str], method_name: str) -> Fact | None:
    """The fact on ``self.method_name(...)`` in a user's class with these bases that does not override it."""
    return next((fact for base in base_types if (fact := method(base, method_name)) is not None), None)


def subclass_attribute(base_types: Iterable[str], attr: str) -> Fact | None:
    """The fact on ``self.attr`` in a user's class with these bases."""
    return next((fact for base in base_types if (fact := attribute(base, attr)) is not None), None)


def attribute_types(base_types: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The attributes of these bases that hold an instance of a known type."""
    for base in base_types:
        for facts in lineage(base):
            yield from ((name, fact.returns) for name, fact in facts.attributes.items() if fact.returns)


def runs_in_one_process(base_types: Iterable[str], method_name: str) -> bool:
    """Whether a library calls a method of such a class in one process of each node alone."""
    bases = list(base_types)
    held = any(hook_parameters(bases, name) is not None for name in ("train_dataloader", "training_step"))
    return method_name in ONE_PROCESS_HOOKS and held


def is_failure_hook(base_types: Iterable[str], method_name: str) -> bool:
    """Whether a library calls a method of such a class on a rank where an exception ends the run."""
    return method_name in conventions.FAILURE_HOOKS and hook_parameters(base_types, method_name) is not None


def hook_parameters(base_types: Iterable[str], method_name: str) -> tuple[str, ...] | None:
    """Types of the parameters (receiver not counted) of a method that the library calls; None: no hook."""
    for base in base_types:
        for facts in lineage(base):
            if method_name in facts.hooks:
                return facts.hooks[method_name]
    return None


def environment(key: str) -> Fact | None:
    """The fact on reading the environment variable ``key``; None when uniform or unknown."""
    return conventions.ENVIRONMENT.get(key)


def unread_helper(qualname: str, num_args: int) -> Fact | None:
    """What a function that cannot be read does by its name: a collective as methods of unknown objects are."""
    if _works_alone(qualname):
        return None
    fact = unknown_method(qualname.rpartition(".")[2], num_args)
    return fact if fact is not None and fact.op else None


def agrees_by_name(qualname: str) -> bool:
    """Whether a helper that cannot be read says by its name that its result is the same on every rank."""
    return not _works_alone(qualname) and conventions.AGREES.search(qualname.rpartition(".")[2]) is not None


def _works_alone(qualname: str) -> bool:
    root = qualname.partition(".")[0]
    return root in conventions.LOCAL_ROOTS or root in sys.stdlib_module_names


def may_be_none(qualname: str) -> bool:
    """Whether a library's name is None until something has been started."""
    return qualname in _UNSET_AT_FIRST


def says_launched(name: str) -> bool:
    """Whether a flag of that name says that there are several ranks."""
    return name in conventions.LAUNCHED


def unknown_method(name: str, num_args: int) -> Fact | None:
    """The fact on ``receiver.name(...)`` with an unknown receiver, for names that mean one thing only."""
    entry = conventions.UNKNOWN_METHODS.get(name)
    if entry is None:
        return None
    min_args, max_args, fact = entry
    return fact if min_args <= num_args <= max_args else None


def unknown_attribute(name: str) -> Fact | None:
    """The fact on ``receiver.name`` with an unknown receiver, for names that mean one thing only."""
    return conventions.UNKNOWN_ATTRIBUTES.get(name)


def conventional_name(name: str) -> Fact | None:
    """The fact on a parameter or variable of which only the name is known (``local_rank``, ``is_master``)."""
    return conventions.NAMES.get(name)


def conventional_type(name: str) -> str | None:
    """The type that a parameter of this name has by convention; weaker than an annotation."""
    return conventions.TYPES_BY_NAME.get(name)


def type_by_import(name: str, imported: Iterable[str]) -> str | None:
    """The type that a parameter of this name has in a file with these imports; None where they tell of several."""
    known = conventions.TYPES_BY_IMPORT.get(name)
    if known is None:
        return None
    targets = tuple(imported)
    found = [type_name for pattern, type_name in known if any(map(pattern.match, targets))]
    return found[0] if len(found) == 1 else None


def marker_tokens() -> tuple[bytes, ...]:
    """Every file that can matter by itself holds one of these (see ``markers``)."""
    return MARKERS
