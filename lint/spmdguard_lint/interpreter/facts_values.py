"""Values that a fact makes: ranks and their predicates, random numbers, per-rank data, groups."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..traces.judged import is_default_group
from ..values.value import (
    FALSE,
    NO_TAINT,
    NONE,
    Taint,
    Taints,
    Value,
    constant,
    expression,
    retaint,
    symbol,
    union,
)
from .expressions import text_of
from .frame import Frame

if TYPE_CHECKING:
    from ..facts.fact import Arg, Fact

GROUP_TYPE = "torch.distributed.ProcessGroup"
_LIKE = frozenset({"torch.multinomial", "torch.bernoulli", "torch.poisson", "torch.normal"})


def argument(which: Arg | None, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The value passed for an argument, or None."""
    if which is None:
        return None
    if which.keyword in kwargs:
        return kwargs[which.keyword]
    if 0 <= which.index < len(args):
        return args[which.index]
    return None


def dtype_given(kwargs: dict[str, Value]) -> list[Value]:
    """The dtype that a call is asked for, as one more operand of what it makes."""
    return [expression("dtype", (kwargs["dtype"],))] if "dtype" in kwargs else []


def made_from(fact: Fact, receiver: Value | None, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """What an object is made of: what is unwrapped; for a group of a mesh, the mesh and which dimension it is."""
    if receiver is None:
        return args
    if fact.event == "unwrap" and not args:
        return [receiver]
    if fact.returns == GROUP_TYPE and receiver.tag == "extobj":
        return [expression("dimension", (receiver, *args, *kwargs.values()))]
    return args


def main_predicate(
    frame: Frame, which: str, node: ast.AST | None, text: str, certainty: str = "definite"
) -> Value:
    """The condition that holds on the main rank, on each node's first rank, or on the last rank."""
    place = frame.place(node) if node is not None else frame.place(frame.module.outline)
    taint = frozenset({Taint("rank", place, text, certainty)})
    rank = Value("rank", (), taint)
    if which == "local_main":
        return expression("==", (Value("local_rank", (), taint), constant(0)))
    if which == "last":
        return expression("==", (rank, expression("-", (Value("world"), constant(1)))))
    return expression("==", (rank, constant(0)))


def varying_value(
    frame: Frame,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    place: object,
    node: ast.AST | None,
    text: str,
) -> Value:
    real = frame.place(node) if node is not None else frame.place(frame.module.outline)
    kind = fact.varying or "data"
    if kind == "random" and fact.unless is not None and fact.returns:
        seed = argument(fact.unless, args, kwargs)
        if seed is not None and seed.key != NONE.key:
            # a generator that the clock has seeded draws numbers, no times
            drawn = frozenset(t._replace(kind="random") if t.kind == "time" else t for t in seed.taint)
            return Value("extobj", (fact.returns, (name, place), None), drawn, None, (name, place))
    if kind == "random":
        return _random(frame, fact, name, receiver, args, kwargs, real, text)
    if kind == "rank" or kind == "group-rank":
        return _rank_value(frame, fact, kind, args, kwargs, real, text)
    taint = frozenset({Taint(kind, real, text, fact.certainty)})
    if fact.event == "synced-forward":
        taint = taint | {Taint("synced", real, text)}
    if fact.event == "sampler":  # who draws, and among how many: that decides which items come, not how many
        args = args[:1]
    taint = union(taint, *(a.taint for a in args))
    if fact.returns:
        return Value("extobj", (fact.returns, (name, place), None), taint, None, ("extobj", name, place))
    if fact.event == "list":
        frame.machine.listings.add(real)
    return symbol((name, place), taint)


def _rank_value(
    frame: Frame, fact: Fact, kind: str, args: list[Value], kwargs: dict[str, Value], place: object, text: str
) -> Value:
    taint = frozenset({Taint("rank", place, text, fact.certainty)})  # type: ignore[arg-type]
    group = argument(fact.group, args, kwargs)
    if group is not None and not is_default_group(group):
        group_taint = frozenset({Taint("group-rank", place, text, fact.certainty)})  # type: ignore[arg-type]
        own = Value("group_rank", (group,), group_taint, None, ("group_rank", group.key))
        return expression("<", (own, constant(0))) if fact.event == "not-in-group" else own
    if fact.event == "not-in-group":
        return FALSE  # every rank is in the default group
    rank = Value("rank", (), taint)
    if fact.main_only == "local_main":
        return expression("==", (Value("local_rank", (), taint), constant(0)))
    if fact.main_only == "last":
        return expression("==", (rank, expression("-", (Value("world"), constant(1)))))
    if fact.main_only:
        return expression("==", (rank, constant(0)))
    if fact.event == "local-rank":
        return Value("local_rank", (), taint)
    if fact.event == "node-rank":
        return Value("node_rank", (), taint)
    if kind == "group-rank":
        return rank if fact.group is not None else symbol(("group-rank", text), taint)
    return rank


def seed(
    frame: Frame,
    fact: Fact,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> Value | None:
    """Seeding makes what is drawn later as rank-varying as the seed: its contents, and not how much is drawn."""
    place, text = frame.place(node), text_of(node)
    given = union(*(v.taint for v in (*args, *kwargs.values()))) if args or kwargs else NO_TAINT
    taint = frozenset(t._replace(place=place, text=text) if t.kind == "rank" else t for t in given)
    frame.machine.contents_only.add(place)
    library = fact.event.partition("-")[2]
    if library != "generator":
        for name in ("torch", "numpy", "random") if library == "all" else (library,):
            frame.machine.seed_taints[name] = taint
        return None
    if receiver is None:
        return None
    seeded = retaint(receiver, taint, receiver.trip)
    frame.live.replace_everywhere(receiver, seeded)
    return seeded


def _random(
    frame: Frame,
    fact: Fact,
    name: str,
    receiver: Value | None,
    args: list[Value],
    kwargs: dict[str, Value],
    place: object,
    text: str,
) -> Value:
    """A random number: shared when its generator was seeded alike on all ranks, else rank-varying."""
    taint: frozenset[Taint] = frozenset({Taint("random", place, text)})  # type: ignore[arg-type]
    generator = kwargs.get("generator")
    for value in [*args, *([generator] if generator is not None else [])]:
        if value is generator or (value.tag == "extobj" and "Generator" in value.data[0]):
            taint = value.taint
    if receiver is not None and receiver.tag == "extobj":
        taint = receiver.taint
    library = fact.event.partition("-")[2] or name.partition(".")[0]
    seeded = frame.machine.seed_taints.get(library)
    if seeded is not None and next(iter(taint), None) is not None and any(t.kind == "random" for t in taint):
        taint = seeded
    if any(t.kind == "rank" for t in taint):  # seeded by the rank: a number that each rank draws for itself
        taint = taint | {Taint("random", place, text)}  # type: ignore[arg-type]
    taint = union(taint, *(a.taint for a in args))
    return symbol((name, place), taint)


def as_many_as_asked(name: str, args: list[Value], kwargs: dict[str, Value]) -> Taints:
    """Why another number of values is drawn: the sizes that are given, or the length of the tensor that is."""
    like = args[:1] if name in _LIKE or name.endswith("_like") else []
    sizes = (*args[len(like) :], *kwargs.values())
    return union(NO_TAINT, *(one.trip or NO_TAINT for one in like), *(size.taint for size in sizes))


def skipping(fact: Fact, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The first argument, of which another one may leave out the beginning."""
    value = args[0]
    skipped = argument(fact.trips, args, kwargs) if fact.trips is not None else None
    if skipped is None or not skipped.taint:
        return value
    return retaint(value, value.taint, union(value.trip or NO_TAINT, skipped.taint))


def wrapped_arguments(frame: Frame, fact: Fact, args: list[Value], place: object) -> Value:
    from .expressions import tuple_value

    wrapped = [
        Value(
            "extobj",
            (
                fact.returns or "accelerate.prepared",
                (place, index),
                value if value.tag in ("obj", "extobj") else None,
            ),
            NO_TAINT,
            None,
            ("prepared", place, index),
        )
        for index, value in enumerate(args)
    ]
    return wrapped[0] if len(wrapped) == 1 else tuple_value(wrapped)


def certainty_of(frame: Frame, fact: Fact) -> str:
    """How sure a fact is in this project."""
    if fact.sure_if_told and frame.machine.text_says(fact.sure_if_told):
        return "likely"
    return fact.certainty
