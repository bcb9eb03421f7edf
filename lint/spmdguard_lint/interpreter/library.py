"""Calls outside the project: built-ins, known library functions, and calls on unknown receivers."""

from __future__ import annotations

import ast

from ..facts import lookup as facts
from ..facts.build import ENTRY_METRIC, LOCAL_METRIC, METRIC
from ..facts.files import PATH
from ..facts.torch_core import LOADER
from ..traces.nodes import Fallible, Jump, Loop, Op
from ..values.value import (
    NO_TAINT,
    NONE,
    Taint,
    Value,
    constant,
    expression,
    is_const,
    retaint,
    symbol,
    union,
)
from .backward import exchanges
from .comparisons import fold, hashes_alike
from .concurrent import ASYNCIO, as_task
from .contents import condition_of, items_now, listed, whole, with_length
from .datasets import arguments_trip, loader_trip, made_of
from .expressions import text_of
from .facts_values import dtype_given
from .following import hide_handed
from .frame import Frame
from .inflight import call_used, method_used
from .iterating import (
    ITERTOOLS,
    length_of,
    never_ends,
    next_item,
    range_trip,
    resized,
    same_length,
    stops_early,
)
from .kept import present
from .kinds import FORM, PLACEMENT, is_subclass, of_form, of_size, structural
from .lazily import consumed, ends_by_test
from .lengths import UNEVEN
from .modes import made_of_library
from .orders import CHANGING, reordered, sorted_list
from .packing import unpacked
from .protocols import built_in, formatted
from .records import RECORDS, make_record
from .restored import restored
from .selection import PICKS, in_pieces, infers, keeps_length, laid_together, picked, picks
from .serialising import WRITERS, note_unwritable
from .widths import width

_PASS_THROUGH = frozenset({"int", "float", "bool", "str", "abs", "round", "repr"})
_SAME_LENGTH = frozenset({"list", "tuple", "iter", "reversed", "sorted", "enumerate", "zip", "map"})
_PURE_EVALUABLE = frozenset({"min", "max", "sum", "len", "range", "abs"})
_CONSUMING = frozenset(
    {"list", "tuple", "set", "sorted", "sum", "min", "max", "any", "all", "dict", "frozenset"}
)
_OPTIONS = frozenset(
    {"parse_args", "parse_known_args"}
)  # of which one may be a path of a folder made just now
_TEXT = frozenset(
    {"startswith", "endswith", "split", "rsplit", "strip", "lower", "upper", "replace", "partition"}
)
_RANKISH = frozenset({"rank", "local_rank", "node_rank", "world"})


def call_external(
    frame: Frame,
    qualname: str,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
    *,
    spread: bool = False,
) -> Value:
    """Call something outside the project."""
    taken = unpacked(qualname, args)
    if taken is not None:
        return taken
    if qualname.startswith("builtins."):
        return call_builtin(frame, qualname[9:], args, kwargs, node)
    if qualname in WRITERS:
        note_unwritable(frame, args, kwargs, node)
    special = _SPECIAL.get(facts.canonical(qualname))
    if special is not None:
        return special(frame, qualname, args, kwargs, node)
    configured = frame.machine.configured_name(qualname)
    if configured is not None:
        return _configured(frame, configured, qualname, args, kwargs, node)
    fact = facts.function(qualname)
    if fact is not None:
        from .facts_apply import apply_fact

        return apply_fact(frame, fact, qualname, None, args, kwargs, node)
    type_name = facts.constructor(qualname)
    everything = [*args, *(value for name, value in kwargs.items() if name not in PLACEMENT)]
    if type_name is not None:
        type_name = made_of_library(frame, type_name, qualname, args, kwargs, node)
        if _keeps_to_itself(frame, type_name, args, kwargs):
            type_name = LOCAL_METRIC
        place = frame.place(node)
        taint = union(*(v.taint for v in everything)) if everything else NO_TAINT
        kept = frozenset(t for t in taint if t.kind not in ("data", "synced", "random"))
        joined = type_name == PATH and len(args) > 1  # ``Path(folder, name)``
        payload = expression("/", args) if joined else args[0] if args else None
        trip = loader_trip(frame, args, kwargs) if type_name == LOADER else NO_TAINT
        if made_of(qualname):
            trip = arguments_trip(frame, qualname, args)
        return Value("extobj", (type_name, place, payload), kept, trip or None, ("extobj", type_name, place))
    helper = facts.unread_helper(qualname, len(args) + len(kwargs))
    if helper is not None:
        from .facts_apply import apply_fact

        return apply_fact(frame, helper, qualname, None, args, kwargs, node)
    frame.out.append(Fallible(frame.place(node), text_of(node), False))
    call_used(frame, qualname, args, node)
    hide_handed(frame, args, kwargs, node)
    if everything and facts.agrees_by_name(qualname):
        return symbol((qualname, frame.place(node)))
    given = [listed(frame, value) for value in everything] if infers(qualname) else wholes(frame, everything)
    made = expression(f"call:{qualname}", [*given, *dtype_given(kwargs)])
    made = laid_together(frame, qualname, equal_share(made, everything), args)
    if made_of(qualname):
        return retaint(made, made.taint, arguments_trip(frame, qualname, everything))
    if args and picks(qualname, len(args)):
        return picked(frame, made, args[-1] if qualname.endswith("masked_select") else args[0], node)
    return retaint(made, made.taint, NO_TAINT) if never_ends(made) else made


def _keeps_to_itself(frame: Frame, type_name: str, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """A metric told not to synchronise, or a collection of such metrics."""
    if type_name not in (METRIC, ENTRY_METRIC):
        return False
    told = kwargs.get("sync_on_compute")
    if told is not None and is_const(told):
        return not told.data[0]
    from .containers import fields_of

    parts = list(args[0].data) if args and args[0].tag == "tuple" else []
    if args and args[0].tag == "obj" and frame.machine.objects.info(args[0]).kind in ("list", "dict"):
        parts = list(fields_of(frame, args[0]).values())
    return bool(parts) and all(part.tag == "extobj" and part.data[0] == LOCAL_METRIC for part in parts)


def _configured(
    frame: Frame, kind: str, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    place = frame.place(node)
    if kind == "collectives":
        frame.out.append(Op(place, qualname.rpartition(".")[2], "collective", None, text_of(node)))
    if kind == "rank-sources":
        return symbol((qualname, place), frozenset({Taint("rank", place, text_of(node))}))
    if kind == "rank-local":
        frame.out.append(Fallible(place, text_of(node), True))
    return symbol((qualname, place))


def call_builtin(
    frame: Frame, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A built-in function."""
    call_used(frame, name, args, node)
    for value in args if name in _SAME_LENGTH else ():
        consumed(frame, value, node)
    if name == "next" and args:
        stops_early(frame, name, args[0], node)
        return next_item(frame, args, node)
    if args and args[0].tag == "generator" and name in _CONSUMING:
        from .loops import consume

        consume(frame, node, args[0], lambda _value: None, text_of(node))
        args = [symbol(("consumed", frame.place(node)), args[0].taint), *args[1:]]
    if name == "bool" and len(args) == 1:
        args = [condition_of(frame, args[0], node)]
    if name == "iter" and len(args) == 2:
        return ends_by_test(frame, name, args, kwargs, node)
    if name in ("map", "filter") and len(args) > 1:
        return _applied(frame, name, args, node)
    own = built_in(frame, name, args, node)
    if own is not None:
        return own
    if name in _PASS_THROUGH and len(args) == 1:
        if (
            name in ("int", "float")
            and args[0].tag in ("sym", "expr")
            and args[0].taint
            and isinstance(node, ast.Call)
        ):
            frame.out.append(Fallible(frame.place(node), text_of(node), False, own=True))
        return _convert(name, whole(frame, args[0]))
    if name == "len" and len(args) == 1:
        return length_of(frame, present(args[0]))
    if name in _SAME_LENGTH:
        result = same_length(frame, name, args, node)
        return (
            sorted_list(frame, result, args[0], kwargs, node)
            if name == "sorted" and kwargs and args
            else result
        )
    if name == "range":
        value = expression("range", args)
        return retaint(value, value.taint, range_trip(frame, args, value.taint, node))
    if name == "issubclass" and len(args) == 2:
        known = is_subclass(args[0], args[1])
        if known is not None:
            return constant(known)
    if name in ("isinstance", "issubclass", "hasattr", "type", "callable"):
        return structural(expression(f"call:{name}", args))
    if name in ("print", "super", "id"):
        return expression(f"call:{name}", args) if name not in ("print",) else NONE
    if name == "getattr" and len(args) >= 2:
        from .attributes import attribute_by_name

        found = attribute_by_name(frame, args[0], args[1], node)
        if found is not None:
            return found
    if name == "divmod" and len(args) == 2:
        from .expressions import tuple_value

        return tuple_value([fold(expression("//", args)), fold(expression("%", args))])
    if name in ("any", "all") and args:
        stops_early(frame, name, args[0], node)
    if name in ("any", "all", "sum", "min", "max"):
        return fold(expression(name, [items_now(frame, arg) for arg in args]))
    if name in ("set", "frozenset", "dict", "list"):
        from .containers import make_container

        return make_container(frame, name.removeprefix("frozen"), args, kwargs, node)
    if name == "dict.fromkeys" and args:
        from .container_methods import from_keys

        return from_keys(frame, args, node)
    fact = facts.function(f"builtins.{name}")
    if name == "hash" and args and all(map(hashes_alike, args)):
        fact = None
    if fact is not None:
        from .facts_apply import apply_fact

        return apply_fact(frame, fact, name, None, args, kwargs, node)
    if name == "setattr" and len(args) == 3 and is_const(args[1]) and isinstance(args[1].data[0], str):
        from .assignment import set_attribute

        set_attribute(frame, args[0], args[1].data[0], args[2], node)
        return NONE
    if name == "setattr" and len(args) == 3:
        from .assignment import set_some_attribute

        set_some_attribute(frame, args[0], args[1], node)
        return NONE
    return expression(f"call:{name}", wholes(frame, [*args, *kwargs.values()]))


def wholes(frame: Frame, values: list[Value]) -> list[Value]:
    """Values with their contents, as a call that looks at all of them sees them."""
    return [whole(frame, value) for value in values]


def _applied(frame: Frame, name: str, args: list[Value], node: ast.AST) -> Value:
    """``map(f, items)`` and ``filter(f, items)``: one call for each item, as if made at once."""
    from .calls import call_value
    from .containers import REST, allocate, element_of
    from .lengths import trip_taint

    sources = [with_length(frame, source) for source in args[1:]]
    items = [element_of(frame, source, node) for source in sources]
    trip = union(*(trip_taint(source) for source in sources))
    with frame.collecting() as nodes:
        result = call_value(frame, args[0], items, {}, node) if args[0].key != NONE.key else items[0]
    if nodes:
        frame.out.append(Loop(frame.place(node), nodes, [], trip, "comprehension", text_of(node)))
    if name == "filter":
        return allocate(frame, "list", {REST: items[0]}, union(trip, result.taint), node)
    return allocate(frame, "list", {REST: result}, trip, node)


def _convert(name: str, value: Value) -> Value:
    if value.tag in _RANKISH:
        return value if name in ("int", "float", "abs", "round") else expression(name, (value,))
    if value.tag == "expr" and value.data[0] == "str" and value.data[1][0].tag in _RANKISH:
        inner: Value = value.data[1][0]
        return inner
    if value.tag == "ite" and name in ("int", "float"):
        from ..values.value import choice

        condition, then, orelse = value.data
        return choice(condition, _convert(name, then), _convert(name, orelse))
    return fold(expression(name, (value,)))


def call_unknown_method(
    frame: Frame, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value:
    """A method of a receiver of unknown type: by a distinctive name, or the one class nearby that has it."""
    if name == "backward" and exchanges(frame, receiver, args):
        from .facts_apply import apply_fact

        return apply_fact(frame, facts.BACKWARD, "backward", receiver, args, kwargs, node)
    if name == "format" and is_const(receiver):
        args = [formatted(frame, value, -1, node) for value in args]
    if name == "create_task" and args:
        return as_task(frame, name, args, kwargs, node)
    if name == "get" and receiver.tag == "ext":
        return expression("call:get", [receiver, *args])
    fact = facts.unknown_method(name, len(args) + len(kwargs))
    if fact is not None and receiver.tag not in ("const", "tuple"):
        from .facts_apply import apply_fact

        return apply_fact(frame, fact, name, receiver, args, kwargs, node)
    nearby = frame.machine.nearby_method(frame, receiver, node)
    if nearby is not None:
        from .attributes import bound_method
        from .calls import call_value
        from .parameters import symbolic_instance

        owner = nearby.cls
        assert owner is not None
        instance = symbolic_instance(frame, owner, ("nearby", owner.full_name))
        return call_value(frame, bound_method(frame, nearby, instance), args, kwargs, node)
    frame.out.append(Fallible(frame.place(node), text_of(node), False))
    method_used(frame, receiver, name, args, node)
    hide_handed(frame, args, kwargs, node)
    if name in CHANGING:
        reordered(frame, receiver, name, args, kwargs, node)
    resized(frame, receiver, name)
    given = [*args, *kwargs.values()]
    result = equal_share(expression(f"call:{name}", [receiver, *wholes(frame, given)]), given)
    if name in ("items", "keys", "values", "copy"):
        result = retaint(result, result.taint, receiver.trip)
    if name in ("to", "cuda", "cpu", "type"):
        result = retaint(result, receiver.taint, receiver.trip)
    elif receiver.trip and keeps_length(name, args):
        result = retaint(result, result.taint, receiver.trip)
    result = in_pieces(name, result, args)
    if name in PICKS:
        result = picked(frame, result, args[0] if name == "masked_select" and args else receiver, node)
    if name in _TEXT or name in _OPTIONS:
        result = retaint(result, frozenset(t for t in result.taint if t.kind not in ("filesystem", "time")))
    if name == "split" and receiver.trip is not None:
        result = retaint(result, result.taint, union(receiver.trip, *(size.taint for size in given)))
    if name in FORM:
        result = of_form(name, receiver, result)
    if name in ("size", "numel", "nelement"):
        result = of_size(frame, receiver, result)
    if name == "size" and len(args) == 1:
        result = width(result, result, args[0])
    if name == "get" and args:
        result = restored(result, receiver, args[0])
    if name.endswith("_") and not name.startswith("_") and isinstance(node.func, ast.Attribute):
        _write_back(frame, receiver, node.func.value, args, result)
    return result


def _write_back(frame: Frame, receiver: Value, target: ast.expr, args: list[Value], result: Value) -> None:
    """``x.fill_(v)``: the receiver changes in place."""
    if not any(a.taint for a in args) or not isinstance(target, (ast.Name, ast.Attribute)):
        return
    from .assignment import assign

    assign(frame, target, retaint(receiver, union(receiver.taint, result.taint), receiver.trip))


def call_unknown(
    frame: Frame, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A call of something unknown: its result depends on the arguments alone."""
    if function.tag == "const":
        return symbol(("call", frame.place(node)))
    frame.out.append(Fallible(frame.place(node), text_of(node), False))
    hide_handed(frame, args, kwargs, node)
    label = function.key
    made = expression(f"call:{hash(label)}", [function, *wholes(frame, [*args, *kwargs.values()])])
    return equal_share(made, [*args, *kwargs.values()])


def equal_share(made: Value, args: list[Value]) -> Value:
    """What unknown code makes of the rank and the world size is taken for a share as long as that of the others."""
    if (
        made.trip is None
        and made.data[0] not in UNEVEN
        and any(a.tag in ("rank", "local_rank") for a in args)
        and any(a.tag == "world" for a in args)
    ):
        return retaint(made, made.taint, NO_TAINT)
    return made


def _partial(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    if not args:
        return symbol(("partial", frame.place(node)))
    named = tuple(sorted(kwargs.items(), key=lambda item: item[0]))
    taint = union(*(a.taint for a in args))
    return Value("partial", (args[0], tuple(args[1:]), named), taint, None, ("partial", frame.place(node)))


def _same_function(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """``functools.wraps(f)`` and the like: a decorator that changes nothing."""
    return symbol((qualname, frame.place(node)))


def _environ_get(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    if qualname.endswith(".setdefault") and len(args) == 2:
        from .flags import set_variable

        set_variable(frame, args[0], args[1], node)
    return environment_value(frame, args[0] if args else NONE, node)


def environment_value(frame: Frame, key: Value, node: ast.AST) -> Value:
    """``os.environ[key]``: the rank as text, the world size as text, or something else."""
    if not is_const(key):
        return expression("environ", (key,))
    name = key.data[0]
    if name in ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        return expression("str", (Value("world"),))
    fact = facts.environment(name) if isinstance(name, str) else None
    if fact is None:
        return symbol(("environ", name))
    from .facts_apply import result_of_fact

    value = result_of_fact(frame, fact, text_of(node), None, [], {}, node)
    if value.tag in _RANKISH:
        return expression("str", (value,))
    return value


def leave(frame: Frame, node: ast.AST, text: str) -> None:
    """Mark that control does not come back."""
    frame.out.append(Jump(frame.place(node), "exit", text, "SystemExit"))
    frame.state = None


def _container(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    from .containers import make_container

    name, kind = qualname.rpartition(".")[2], "list" if qualname.endswith(".deque") else "dict"
    given = [] if name in ("defaultdict", "Counter") else args[:1]
    made = make_container(frame, kind, given, kwargs if name == "OrderedDict" else {}, node)
    frame.machine.objects.info(made).fills_in = name == "defaultdict"
    return made


def _progress(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A progress bar around an iterable yields the iterable's items; a bare one counts where it is shown."""
    if args:
        return args[0]
    if "iterable" in kwargs:
        return kwargs["iterable"]
    return expression("call:tqdm", list(kwargs.values()))


def _is_kind(
    frame: Frame, qualname: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """A question about an object's kind."""
    return structural(expression(f"call:{qualname}", args))


_SPECIAL = {
    "torch.is_tensor": _is_kind,
    "torch.is_storage": _is_kind,
    "collections.OrderedDict": _container,
    "collections.defaultdict": _container,
    "collections.deque": _container,
    "collections.Counter": _container,
    "tqdm.tqdm": _progress,
    "tqdm.auto.tqdm": _progress,
    "tqdm.trange": _progress,
    "tqdm.autonotebook.tqdm": _progress,
    "tqdm.std.tqdm": _progress,
    "rich.progress.track": _progress,
    **ITERTOOLS,
    **dict.fromkeys(RECORDS, make_record),
    "functools.partial": _partial,
    "functools.wraps": _same_function,
    "os.environ.get": _environ_get,
    "os.getenv": _environ_get,
    "os.environ.setdefault": _environ_get,
    "os.environ.__getitem__": _environ_get,
    **ASYNCIO,
}
