"""Every position that the torch tables state is where the real torch has it."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from spmdguard_lint.facts import lookup
from spmdguard_lint.facts.fact import Arg, Fact

from .walk import places, tables

torch = pytest.importorskip("torch")

# other builds and optional parts of torch
ELSEWHERE = ("torch.npu.", "torch.utils.tensorboard.")
# written in C++: no signature to read
UNREADABLE = (
    "torch.distributed.ProcessGroup.",
    "torch.distributed.Store.",
    "torch.distributed.Work.",
    "torch.distributed._broadcast_coalesced",
)

# old names: a thin function around the new one, or a class that only looks the same
RENAMED = {
    "torch.distributed._all_gather_base",
    "torch.distributed._reduce_scatter_base",
    "torch.distributed.all_gather_single",
    "torch.distributed.reduce_scatter_single",
    "torch.distributed._composable.replicate_with_fsdp.replicate",
    "torch.distributed.fsdp.UnshardHandle",
    "torch.nn.utils.clip_grad_norm",
    "torch.random.manual_seed",
}
# ``fully_shard`` adds FSDPModule to the bases of a class that has a forward
MIXED_IN = {"torch.distributed.fsdp.FSDPModule.forward"}
# a name of our own for the future of an asynchronous save, which is a ``concurrent.futures.Future``
OWN = {"torch.distributed.checkpoint.Pending.exception", "torch.distributed.checkpoint.Pending.result"}
# builtins without a signature; of these facts only keywords are stated, which torch's documentation gives
BUILTINS = (
    "torch.rand",
    "torch.normal",
    "torch.bernoulli",
    "torch.multinomial",
    "torch.poisson",
    "torch.Tensor.",
)


def find(name: str) -> Any:
    """The object of a dotted name: an attribute where there is one, else a module to import."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:end]))
        found = getattr(found, part)
    return found


def of_torch() -> Iterator[tuple[str, Fact, bool]]:
    """Name, fact, and whether a receiver comes first, for every callable of the torch tables."""
    known = tables()
    for name, fact in known.functions.items():
        if name.startswith("torch.") and not name.startswith(ELSEWHERE):
            yield name, fact, False
    for type_name, facts in known.types.items():
        if type_name.startswith("torch.") and not type_name.startswith(ELSEWHERE):
            for method, fact in facts.methods.items():
                yield f"{type_name}.{method}", fact, True


CALLABLES = {name: (fact, member) for name, fact, member in of_torch()}


def positions(name: str, member: bool) -> list[inspect.Parameter]:
    """The parameters of a callable, receiver taken off."""
    owner, _, last = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = find(name)
        parameters = list(inspect.signature(found).parameters.values())
        static = inspect.getattr_static(find(owner), last) if member else None
    return parameters[1:] if member and inspect.isfunction(static) else parameters


def agrees(arg: Arg, parameters: list[inspect.Parameter]) -> bool:
    """Whether the argument stands where the fact says; index -1 means by keyword only."""
    named = {p.name: index for index, p in enumerate(parameters)}
    if any(p.kind is p.VAR_KEYWORD for p in parameters) and arg.keyword not in named:
        return arg.index == -1
    if arg.keyword not in named:
        return False
    parameter = parameters[named[arg.keyword]]
    if arg.index == -1:
        return parameter.kind is parameter.KEYWORD_ONLY
    return parameter.kind is not parameter.KEYWORD_ONLY and named[arg.keyword] == arg.index


def test_every_name_exists_in_torch() -> None:
    """No fact is about a function or method that torch does not have."""
    missing = []
    for name in CALLABLES:
        try:
            find(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert set(missing) == MIXED_IN | OWN


def test_every_position_is_right() -> None:
    """Group, root, buffers and the rest stand at the stated index under the stated keyword."""
    wrong: list[str] = []
    checked = 0
    for name, (fact, member) in CALLABLES.items():
        if not places(fact) or name.startswith(UNREADABLE) or name in MIXED_IN | OWN:
            continue
        if name.startswith(BUILTINS) and {arg.index for arg in places(fact)} == {-1}:
            continue
        try:
            parameters = positions(name, member)
        except ValueError:  # a builtin without a signature
            wrong.append(f"{name}: unreadable")
            continue
        checked += 1
        wrong += [f"{name}: {arg}" for arg in places(fact) if not agrees(arg, parameters)]
    assert wrong == []
    assert checked > 70


def test_the_position_check_can_fail() -> None:
    """A wrong index, a wrong keyword and a keyword-only argument given an index are noticed."""
    parameters = positions("torch.distributed.all_reduce", False)
    assert agrees(Arg(2, "group"), parameters)
    assert not agrees(Arg(1, "group"), parameters)
    assert not agrees(Arg(2, "pg"), parameters)
    assert not agrees(Arg(0, "process_group"), positions("torch.distributed.checkpoint.save", False))


def test_every_alias_is_the_same_object_as_its_canonical_name() -> None:
    """Where both names exist in this torch, they are the same thing, or one thing renamed."""
    different = []
    for alias, target in tables().aliases.items():
        if not alias.startswith("torch.") or not target.startswith("torch."):
            continue
        if target.startswith(ELSEWHERE):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                left, right = find(alias), find(target)
        except (ImportError, AttributeError):
            continue
        related = inspect.isclass(left) and inspect.isclass(right) and issubclass(left, right)
        if left is not right and not related:
            different.append(alias)
    assert set(different) == RENAMED


def test_every_public_collective_of_torch_has_a_fact() -> None:
    """A function of torch.distributed that takes a group and is no accessor is known to the tables."""
    import torch.distributed as dist

    unknown = []
    for name in dir(dist):
        found = getattr(dist, name)
        if name.startswith("_") or not inspect.isfunction(found) or "distributed" not in found.__module__:
            continue
        if name in ("register_rendezvous_handler", "supports_complex", "get_pg_count", "record_comm"):
            continue
        if name.startswith("is_"):
            continue
        if lookup.function(f"torch.distributed.{name}") is None:
            unknown.append(name)
    assert unknown == []
