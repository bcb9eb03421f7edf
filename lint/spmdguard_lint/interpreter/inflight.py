"""Buffers of operations that are under way: marks in the trace where code reads or writes them.

Terminology: an operation is *under way* between its start (``async_op=True``, ``isend``) and the wait on its handle.
Whether a use lies in between is for a rule to say, which walks the trace; here only the uses are marked, with the
places of the operations that were begun on the buffer. A buffer that an operation fills is known by the value that the
operation left there, one that is sent by the identity of its value.
"""

from __future__ import annotations

import ast

from ..facts.build import WORK
from ..traces.nodes import Event
from ..values.value import Place, Value, alternatives, called, is_const
from .contents import is_container
from .frame import Frame

ALWAYS = frozenset({"isend", "irecv", "batch_isend_irecv"})
_HARMLESS = frozenset(
    {
        "size",
        "numel",
        "dim",
        "stride",
        "data_ptr",
        "nelement",
        "element_size",
        "is_contiguous",
        "record_stream",
    }
    | {"narrow", "chunk", "split", "unbind", "tensor_split", "unfold", "diagonal"}
    | {
        "select",
        "requires_grad_",
        "new_zeros",
        "new_empty",
        "type",
    }
    | {
        "zeros_like",
        "ones_like",
        "empty_like",
        "rand_like",
        "full_like",
        "is_tensor",
        "new_tensor",
        "new_ones",
    }
    | {"is_floating_point", "result_type", "register_hook", "untyped_storage", "is_complex", "get_device"}
)
VIEWS = frozenset(  # of the whole of a tensor
    {
        "view",
        "view_as",
        "reshape",
        "flatten",
        "squeeze",
        "unsqueeze",
        "detach",
        "transpose",
        "permute",
        "expand",
        "as_strided",
        "contiguous",
        "view_as_complex",
        "view_as_real",
    }
)
_READING = frozenset({"float", "int", "bool", "print", "sum", "min", "max", "abs", "round", "str"})


def starts(
    name: str, qualname: str, kwargs: dict[str, Value], num_args: int, group_index: int
) -> bool | None:
    """Whether a call only begins its operation; None where a variable decides."""
    if name in ALWAYS:
        return True
    switch = kwargs.get("async_op")
    if switch is not None:
        return bool(switch.data[0]) if is_const(switch) else None
    known = qualname.startswith("torch.distributed.") and "ProcessGroup." not in qualname
    return False if known and num_args <= group_index + 1 else None


def begun(frame: Frame, place: Place, sent: list[Value]) -> None:
    """An operation has been begun; ``sent`` are the buffers that it reads."""
    machine = frame.machine
    machine.begun.add(place)
    for value in sent:
        if value.tag in ("sym", "expr") and not is_container(frame, value):
            known = machine.sent.get(id(value))
            machine.sent[id(value)] = (value, (known[1] if known else frozenset()) | {place})


def used(frame: Frame, value: Value, node: ast.AST, *, written: bool) -> None:
    """Code touches the contents of a value: marked where an operation may be under way on it."""
    machine = frame.machine
    if not machine.begun or frame.state is None:
        return
    places = set(_filled_by(frame, value))
    known = machine.sent.get(id(value))
    if known is not None and known[0] is value and written:
        places |= known[1]
    if places:
        from .expressions import text_of

        mark = Value("places", tuple(sorted(places)))
        name = "buffer-written" if written else "buffer-read"
        frame.out.append(Event(frame.place(node), name, text_of(node), (mark,)))


def _filled_by(frame: Frame, value: Value) -> list[Place]:
    """The operations that have left a value where it stands, as far as every alternative says so."""
    found: list[Place] = []
    values = [value]
    if is_container(frame, value):
        from .containers import fields_of

        values = list(fields_of(frame, value).values())
    for one in map(_viewed, (a for v in values for a in alternatives(v))):
        name = one.data[0] if one.tag == "sym" else None
        if not (isinstance(name, tuple) and len(name) > 1 and name[0] == "filled"):
            return []
        if name[1] in frame.machine.begun:
            found.append(name[1])
    return found


def _viewed(value: Value) -> Value:
    """What a value is a view of, the whole of it."""
    while value.tag == "expr" and value.data[1] and called(value.data[0]) in VIEWS:
        value = value.data[1][0]
    return value


def method_used(frame: Frame, receiver: Value, name: str, args: list[Value], node: ast.AST) -> None:
    """``x.fill_(v)`` writes x, ``x.sum()`` reads it; metadata and views do neither."""
    if name in _HARMLESS or name in VIEWS:
        return
    if _hands_over(frame, args, node):
        return
    in_place = name.endswith("_") and not name.startswith("_")
    used(frame, receiver, node, written=in_place)
    for arg in args:
        used(frame, arg, node, written=False)


def call_used(frame: Frame, name: str, args: list[Value], node: ast.AST) -> None:
    """A library function reads its arguments."""
    last = name.rpartition(".")[2]
    if (
        last in _HARMLESS
        or last in VIEWS
        or (name == last and last not in _READING)
        or _hands_over(frame, args, node)
    ):
        return
    for arg in args:
        used(frame, arg, node, written=False)


def _hands_over(frame: Frame, args: list[Value], node: ast.AST) -> bool:
    """Whether unknown code gets a handle, and may wait for it before it looks at anything else: marked in the trace."""
    found = False
    for arg in args if frame.machine.begun else ():
        values = [arg]
        if is_container(frame, arg):
            from .containers import fields_of

            values = list(fields_of(frame, arg).values())
        for one in values:
            if any(a.tag == "extobj" and a.data[0] == WORK for a in alternatives(one)):
                frame.out.append(Event(frame.place(node), "handle-given", "", (), receiver=one))
                found = True
    return found
