"""
# rank-varying-root-or-shape (SPG107)

## What it does
Finds collectives whose root (`src`, `dst`), reduce operator, tensor size or dtype differs between the ranks that call
it, by one call or by the calls that meet from the two arms of a branch, roots that are a rank within the group where
the global rank is asked for, lists of `gather` and `scatter` that the root lacks or other ranks give, lists of
objects that are not as long on each rank (`broadcast_object_list`), and exchanges in which a rank expects other
numbers of rows than it is sent (`all_to_all_single`).

## Why is this bad
A root is an agreement: with `dst=rank` every rank believes that it is the one to receive, and nobody
sends. With another operator on each rank the result is computed in part by one and in part by the other.
Neither is checked at run time: the call hangs, or returns a wrong number without a word.

## Example
```python
import torch.distributed as dist


def collect(x):
    me = dist.get_rank()
    dist.reduce(x, dst=me)
```

## Use instead
```python
import torch.distributed as dist


def collect(x):
    dist.reduce(x, dst=0)
```

A loop in which each rank is the root in turn is right:

```python
import torch.distributed as dist


def exchange(buffers):
    for owner in range(dist.get_world_size()):
        dist.broadcast(buffers[owner], src=owner)
```

## Known limits
Roots within sub-groups legitimately differ from group to group, and are judged only where a rank names itself, and
where all ranks name one number although each calls on the group that it belongs to (of a `DeviceMesh`, where the code
says that it has several dimensions). A root that a rank computes from its own data, the clock or a random number is of
certainty `likely`. Sizes are compared where the tensors are made of numbers that the code writes down or computes from
the rank, where a tensor holds those elements of this rank's own data that meet a test (`x[mask]`, `nonzero`,
`unique`), is put together of such tensors or made of a list that is as long as this rank's own data says (`cat`,
`stack`, `torch.tensor(found)`) or has an entry for each item of the rank's share (`range(rank, n, world)`; not where
the code asks for the remainder of a division by the world size), or counts it to its largest number (`bincount`), and,
on the group of all ranks, where it is cut or made to a length found there (`x[:, : lengths.max()]`) or is what a model
has generated (`generate`). So is where one rank hands on its data piece by piece (`data[i : i + size]`, a loop of
`ceil(n / size)` rounds) and the others always receive `size` rows. The buffer of a rank that receives a broadcast is
compared where it is made like what that rank sends in its own turn, and a placeholder for a list of objects where it
has an entry for each item that the rank gave to a gather before. Dtypes are compared where the calls that make or
convert the tensors name them or the numbers that they are made of tell (`torch.tensor(total / n if n else 0)`, not a
list with computed items); where one rank converts (`x.half()`) what the others hand over as it is, the certainty is
`likely`. Lengths of lists are compared where the code writes their items down or repeats one (`[None] * n`), numbers
of rows where the code computes them from the rank, and where one list of this rank's own counts is given for both
directions. Arms of a branch are compared where nothing else in them decides about operations.

## Fix safety
No fix: only the author knows the root.

## References
- [torch.distributed.reduce](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.reduce)
- `dist.broadcast_object_list([winner], src=0)` shares a root found at run time
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model import Finding, TrailStep
from ..traces.divergence import group_key, variance
from ..traces.nodes import Branch, Loop, Op
from ..values.evaluate import Valuation, evaluate, truth
from ..values.value import NONE
from .registry import rule
from .support import site
from .support_arms import pairs
from .support_counts import disagreement
from .support_dtypes import unequal_dtypes
from .support_remainders import smaller_at_the_end
from .support_roots import numbered_alike, one_for_all_groups
from .support_shapes import ALIKE, unequal
from .support_trees import WORLDS, Path, Step, finding_at, members_of, passed, reaching, steps
from .support_varying import varies

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..traces.nodes import Tree
    from ..values.value import Value

RULE = rule(code="SPG107", name="rank-varying-root-or-shape", severity="error", status="stable", page=__doc__)
HELP = "every rank must name the same root and the same operator: a constant, or a value shared before"
SIZES = "share the sizes first and pad to the largest, or gather objects"
LISTS = "give the list on the root, and None on every other rank"
_ROOTED = frozenset({"gather", "gather_object", "scatter"})
DTYPES = "convert to one dtype on every rank before the call"
GLOBAL = "translate it with `dist.get_global_rank(group, rank)`, or pass it as `group_src` or `group_dst`"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations whose root or operator differs between the ranks that reach them."""
    for root in analysis.roots:
        if not root.contents.ops:
            continue
        for step in root.steps:
            if isinstance(step.node, Op) and step.node.kind == "collective":
                yield from _judge(step, step.node)
                yield from _sizes(step, step.node, root.tree)
                yield from _lengths(step, step.node)
        yield from _roots_outside(root.tree)
        yield from _in_arms(root)
    yield from _lists(analysis)


def _in_arms(root: Root) -> Iterable[Finding]:
    """Calls that meet from the two arms of a branch, with another root, operator, size or dtype in each."""
    for pair in pairs(root.steps):
        step = Step(pair.met, pair.path)
        found = next(
            iter((*_judge(step, pair.met), *_sizes(step, pair.met, root.tree), *_lengths(step, pair.met))),
            None,
        )
        if found is not None:
            other = TrailStep(site(pair.other.place), f"`{pair.other.text}` is what the other ranks call")
            yield replace(found, trail=(*found.trail, other))


def _sizes(step: Step, op: Op, tree: Tree) -> Iterable[Finding]:
    """Tensors of another size or dtype on each rank."""
    found = unequal(op, step.path, tree)
    if found is None and op.name in ALIKE:
        part = next((value for value in op.tensors if smaller_at_the_end(value, step.path)), None)
        found = None if part is None else ("likely", part, "the last piece of the data may be smaller")
    if found is None:
        yield from _dtypes(step, op)
        return
    certainty, value, what = found
    yield finding_at(
        RULE,
        op,
        f"ranks hand tensors of other sizes to `{op.text}`: {what}",
        SIZES,
        certainty=certainty,
        taints=variance(value.taint)[:2],
        calls=step.calls,
    )


def _lengths(step: Step, op: Op) -> Iterable[Finding]:
    """Lists of objects of other lengths, and exchanges in which ranks expect other rows than they are sent."""
    found = disagreement(op, step.path) if op.sizes else None
    if found is not None:
        taints = variance(found.value.taint)[:2]
        certainty = found.certainty
        yield finding_at(
            RULE, op, found.message, found.help, certainty=certainty, taints=taints, calls=step.calls
        )


def _lists(analysis: Analysis) -> Iterable[Finding]:
    """The list that only the root gives, missing there or given by others; callers know best which ranks come there."""
    roots = [root for root in analysis.roots if not root.contents.ops.isdisjoint(_ROOTED)]
    called = {
        step.node.place
        for root in roots
        for step in root.steps
        if isinstance(step.node, Op) and step.node.at_root is not None and step.calls
    }
    for root in roots:
        method = root.function is not None and root.function.cls is not None
        for step in root.steps:
            op = step.node
            if (
                not isinstance(op, Op)
                or op.at_root is None
                or group_key(op) is not None
                or "group_" in op.text
            ):
                continue
            alone = not step.calls and (method or op.place in called)
            what = None if alone else _wrong_list(op, op.at_root, step.path, passed(root.tree, step))
            if what is not None:
                message = f"{what} in `{op.text}`"
                yield finding_at(RULE, op, message, LISTS, certainty="definite", calls=step.calls)


def _wrong_list(op: Op, at_root: Value, path: Path, before: Path) -> str | None:
    """A rank that has the list and is not the root, or the other way round; ``before`` tells who has left already."""
    for world, local in WORLDS:
        for rank in range(world):
            at = Valuation(rank, world, local)
            root = 0 if op.root is None or op.root.key == NONE.key else evaluate(op.root, at)
            given = truth(at_root, at)
            if given is None or not isinstance(root, int):
                continue
            if not _surely(path, at) or not reaching(before, at):
                continue
            if given is not (rank == root):
                return (
                    f"rank {rank} {'gives a list and is not' if given else 'gives no list and is'} the root"
                )
    return None


def _surely(path: Path, at: Valuation) -> bool:
    """Whether a rank comes to the end of a path under conditions all of which are known."""
    for node, part in path:
        if isinstance(node, Branch) and truth(node.condition, at) is not (part == "then"):
            return False
    return True


def _dtypes(step: Step, op: Op) -> Iterable[Finding]:
    """Tensors of another dtype on each rank."""
    found = unequal_dtypes(op, step.path)
    if found is None:
        return
    certainty, value = found
    message = f"ranks hand tensors of other dtypes to `{op.text}`"
    taints = variance(value.taint)[:2]
    yield finding_at(RULE, op, message, DTYPES, certainty=certainty, taints=taints, calls=step.calls)


def _other_rounds(path: Path) -> bool:
    """Whether ranks run a loop around a different number of times: what its rounds have is another defect."""
    return any(isinstance(node, Loop) and variance(node.trip) for node, _ in path)


def _roots_outside(tree: Tree) -> Iterable[Finding]:
    """Roots that are no global rank of a member: ranks within the group, and ranks of others."""
    leaders: set[tuple[object, object]] = set()
    for step in steps(tree):
        node = step.node
        if isinstance(node, Branch):
            leaders.update(_compared(node.condition))
        if not isinstance(node, Op) or node.root is None or node.group is None or group_key(node) is None:
            continue
        if (node.group.key, node.root.key) in leaders and not numbered_alike(node):
            message = f"the root of `{node.text}` is a rank within the group, and a global rank is asked for"
            yield finding_at(RULE, node, message, GLOBAL, calls=step.calls)
        elif _is_outside(node.root, node.group, step.path):
            message = f"the root of `{node.text}` is no member of the group"
            yield finding_at(RULE, node, message, GLOBAL, certainty="definite", calls=step.calls)
        elif one_for_all_groups(node.root, node.group, step.path, tree):
            message = f"the root of `{node.text}` is one global rank, and ranks call it on different groups"
            yield finding_at(RULE, node, message, GLOBAL, calls=step.calls)


def _is_outside(root: Value, group: Value, path: Path) -> bool:
    """Whether members that come to the end of a path name a root outside their group, which is known."""
    for world, local in ((4, 2), (8, 4)):
        for rank in range(world):
            at = Valuation(rank, world, local)
            members, named = members_of(group, at), evaluate(root, at)
            if members is None or not isinstance(named, int):
                return False
            inside = max(members, default=0) < world and rank in members
            if inside and reaching(path, at) and named not in members:
                return True
    return False


def _compared(condition: Value) -> Iterator[tuple[object, object]]:
    """The pairs (group, what its own rank is compared with) of a condition; numbers written down do not count."""
    if condition.tag != "expr":
        return
    operator, operands = condition.data
    if operator in ("==", "!="):
        for mine, other in (operands, operands[::-1]):
            if mine.tag == "group_rank" and other.tag != "const":
                yield mine.data[0].key, other.key
    elif operator in ("and", "or", "not"):
        for operand in operands:
            yield from _compared(operand)


def _judge(step: Step, op: Op) -> Iterable[Finding]:
    named = [("root", op.root)] if op.root is not None else []
    for word, value in (*named, *(("operator or other shared argument", v) for v in op.invariant)):
        certainty = varies(value, step.path, subgroup=group_key(op) is not None)
        if certainty is None or (certainty == "likely" and _other_rounds(step.path)):
            continue
        message = f"the {word} of `{op.text}` differs between the ranks that call it"
        yield finding_at(
            RULE, op, message, HELP, certainty=certainty, taints=variance(value.taint)[:2], calls=step.calls
        )
        return
