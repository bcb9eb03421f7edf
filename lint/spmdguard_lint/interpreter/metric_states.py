"""States of a metric of the project's own, as ``add_state`` declares them.

Before a metric is computed the ranks gather its states. Of a list that is to be concatenated each rank sends one
tensor; of any other list each rank sends one item after another, so that all ranks must have put in as many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.build import ENTRY_STATE
from ..facts.fact import Arg
from ..values.value import NONE, Value, is_const
from .contents import is_container
from .facts_values import argument

if TYPE_CHECKING:
    from .frame import Frame

_NAME, _DEFAULT, _REDUCTION = (
    Arg(position, name) for position, name in enumerate(("name", "default", "dist_reduce_fx"))
)


def declare_state(frame: Frame, metric: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Give a metric a field for a list that is gathered item by item."""
    from .containers import fields_of

    name, default = argument(_NAME, args, kwargs), argument(_DEFAULT, args, kwargs)
    if name is None or default is None or not is_const(name) or metric.tag != "obj":
        return
    if not is_container(frame, default) or fields_of(frame, default) or frame.state is None:
        return
    if not _concatenates(argument(_REDUCTION, args, kwargs) or NONE):
        label = ("state", metric.data[0], name.data[0])
        frame.state.set_field(metric.data[0], name.data[0], Value("extobj", (ENTRY_STATE, label, None)))


def _concatenates(reduction: Value) -> bool:
    if reduction.tag == "ext":
        return str(reduction.data[0]).endswith("dim_zero_cat")
    return is_const(reduction) and reduction.data[0] == "cat"
