"""
# unordered-collective-iteration (SPG403)

## What it does
Finds loops that call collectives for items in an order of each rank's own: over a set, in the order in which things
finish, over a list that the rank decides to reverse, rotate, sort or shuffle; and branches on such an order. Sorting a
set by a key that many items share (`key=len`, `key=lambda n: n.startswith("norm")`) leaves those in the set's order.
The items may be groups that share members: each call then meets ranks that are in another group.

## Why is this bad
The order of a set of strings differs between processes: Python salts their hashes anew in each. Rank 0
broadcasts `weight` first, rank 1 `bias`: where the shapes agree, parameters are exchanged silently; where
they do not, the job hangs or crashes. With `PYTHONHASHSEED=0` on the developer's machine it never
happens.

## Example
```python
import torch.distributed as dist


def share(model, skip):
    table = dict(model.named_parameters())
    for name in set(table) - set(skip):
        dist.broadcast(table[name].data, src=0)
```

## Use instead
```python
import torch.distributed as dist


def share(model, skip):
    table = dict(model.named_parameters())
    for name in sorted(set(table) - set(skip)):
        dist.broadcast(table[name].data, src=0)
```

## Known limits
Sets of whole numbers are the same everywhere and are no findings, where the analysis can tell that they
are numbers. A dict keeps the order in which it was filled; where that was the order of a set, it is seen
only for dict comprehensions. `set.pop()` is not looked at. Items of a list that are taken by a computed index
(`items[(i + rank) % n]`) are not followed. A sort key that looks something up (`key=place.get`) is taken to tell all
items apart.

## Fix safety
`sorted(...)` around the set is safe for literal sets of strings or of numbers. For other sets it is unsafe: items that
cannot be compared raise. The order of completion, and sets behind a function of their own, have no fix.

## References
- [`object.__hash__`: hashes are salted](https://docs.python.org/3/reference/datamodel.html#object.__hash__)
- [logix-project/logix#68](https://github.com/logix-project/logix/pull/68): states kept in a set,
  synchronised in another order on each rank
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Finding
from ..traces.nodes import Loop, Node, Op, every_node
from ..values.evaluate import Valuation
from ..values.value import OF_A_SET, alternatives
from .registry import rule
from .support import from_divergence
from .support_claims import claimed, decided
from .support_passes import without_passes
from .support_trees import finding_at, members_of, waits

if TYPE_CHECKING:
    from ..analysis import Analysis
    from ..values.value import Value

RULE = rule(
    code="SPG403",
    name="unordered-collective-iteration",
    severity="error",
    status="stable",
    page=__doc__,
    fix="safe",
)
_AT = Valuation(0, 4, 2)
HELP = "iterate in an order that all ranks share: `sorted(...)` around the set"
SHARED = "take the items in an order that all ranks share"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Loops over unordered items with collectives in the body, then divergences that an order decides."""
    for root in analysis.roots:
        if not root.contents.ops or not root.contents.num_loops:
            continue
        for step in root.steps:
            node = step.node
            if not isinstance(node, Loop) or not node.order:
                continue
            ops = [n for n in every_node(node.body) if isinstance(n, Op) and _with_data(n)]
            op = next(iter(without_passes(analysis, node, ops)), None)
            if op is None:
                continue
            message = (
                f"`{node.text}` takes its items in an order that differs between ranks, "
                f"and calls `{op.text}` for each"
            )
            marks = [("loop", node), *(("set", Node(t.place)) for t in node.order[:1] if t.text == OF_A_SET)]
            help_text = HELP if node.order[0].text == OF_A_SET else SHARED
            shown = node if op.implicit else op
            yield finding_at(
                RULE,
                shown,
                message,
                help_text,
                taints=node.order[:1],
                calls=step.calls,
                reached=op,
                marks=marks,
            )
    for divergence in claimed(analysis.divergences, RULE.code):
        yield from_divergence(
            RULE, divergence, decided(divergence, "an order that differs between ranks"), HELP
        )


def _with_data(op: Op) -> bool:
    """Whether it matters which item an operation belongs to; one barrier is like another.

    Where the items are groups, each call meets other ranks.
    """
    return (waits(op) and "barrier" not in op.name) or (op.kind == "collective" and _on_each(op.group))


def _on_each(group: Value | None) -> bool:
    """Whether a group is now this and now that one of several that share members: groups themselves are the items."""
    if group is None or not _one_of_several(group):
        return False
    several = {one.key: members_of(one, _AT) for one in alternatives(group)}
    return any(
        first is None or second is None or not set(first).isdisjoint(second)
        for first, second in itertools.combinations(several.values(), 2)
    )


def _one_of_several(group: Value) -> bool:
    if group.tag != "ite":
        return False
    condition, then, orelse = group.data
    label = condition.data[0] if condition.tag == "sym" else None
    chosen = isinstance(label, tuple) and "one-of" in label[:2] and then.key != orelse.key
    return chosen or _one_of_several(then) or _one_of_several(orelse)
