"""
# collective-in-rank-branch (SPG101)

## What it does
Finds collectives that only some ranks reach, because they stand in a branch whose condition differs
between ranks. A flag by which a callback asks the trainer to stop or to save (`trainer.should_stop = True`)
counts as one: the trainer acts on it without asking the other ranks. So does reading an attribute that
communicates: Lightning's `trainer.log_dir`, and `trainer.callback_metrics` where an epoch ends and something was
logged with `sync_dist`. An `init_process_group` that some ranks alone reach is one as well, where the others go on to
collectives without a group.

## Why is this bad
A collective ends when every rank of its group has called it. The ranks inside the branch wait for the
others, which never come: the job hangs until the backend's timeout (10 minutes with NCCL, 30 with
others), and the error that ends it then names the wrong rank. Where another collective follows, it is
worse: the two are matched with one another, and the job goes on with mixed-up data.

## Example
```python
import torch.distributed as dist


def save(model, path):
    if dist.get_rank() == 0:
        write(model.state_dict(), path)
        dist.barrier()
```

## Use instead
```python
import torch.distributed as dist


def save(model, path):
    if dist.get_rank() == 0:
        write(model.state_dict(), path)
    dist.barrier()
```

The branch keeps the work of one rank; the collective is everybody's. A collective that is meant for a
part of the ranks takes a group made for them: `dist.barrier(group=leaders)` under a test of membership in
`leaders`.

## Known limits
Both arms are compared up to the end of the function, so a barrier in each arm, complementary branches and
always-true tests (`rank < world_size`) are no findings. Point-to-point calls are not looked at: they are
meant to differ. A collective behind a call that the analysis cannot resolve is not seen; name such a
function under `collectives` in the settings. Sub-groups are judged only where membership and condition
can be compared; otherwise the finding is of certainty `possible` and not shown by default.

## Fix safety
Unsafe: every rank makes the call then, with all that it does besides. The fix moves the statement behind or before
the branch, splits the branch around it, or evaluates the collective before the branch into a new name. There is
none where the call uses what the branch makes, stands in a loop or a nested branch of the arm, or where the arm
leaves before it; nor where the condition also decides whether the call is made at all (`if correct > best`), or the
called function prints, writes, or publishes something without a rank test of its own: every rank would do it then.

## References
- SPG502 (collective-save-on-main-only) is reported here: a sharded save that one rank makes alone is a collective
  in its branch, seen directly (SPG101) or behind a call (SPG104)
- [Chapter on collective operations,
  torch.distributed](https://docs.pytorch.org/docs/stable/distributed.html)
- PARCOACH: E. Saillard, P. Carribault and D. Barthou, "Combining static and dynamic validation of MPI
  collective communications", IJHPCA 2014
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model import Certainty, Finding
from ..traces.divergence import variance
from .registry import rule
from .support import from_divergence
from .support_claims import asks, claimed, where
from .support_joining import joined_by_some
from .support_moves import with_move_marks
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis

RULE = rule(
    code="SPG101",
    name="collective-in-rank-branch",
    severity="error",
    status="stable",
    page=__doc__,
    fix="unsafe",
)
AGREE = "share the decision first (all_reduce, broadcast), and set the flag on every rank"
JOIN = "let every rank join the group before any of them uses it"
HELP = "call it on every rank, and keep only this rank's own work inside the branch"


def check(analysis: Analysis) -> Iterable[Finding]:
    """Operations in one arm of a branch on the rank."""
    for divergence in claimed(analysis.divergences, RULE.code):
        hidden = " hides a collective that" if divergence.implicit else ""
        message = f"`{divergence.text}`{hidden} runs only {where(divergence)}"
        finding = from_divergence(RULE, divergence, message, AGREE if asks(divergence) else HELP)
        yield with_move_marks(finding, divergence)
    yield from _joined(analysis)


def _joined(analysis: Analysis) -> Iterable[Finding]:
    """Groups of all ranks that some ranks alone join."""
    for root in analysis.roots:
        for found in joined_by_some(root):
            op, text = found.step.node, getattr(found.step.node, "text", "")
            taints = variance(found.branch.condition.taint)
            sure: Certainty = "possible" if taints and taints[0].certainty == "possible" else "likely"
            lets = f"only where `{found.branch.text}` lets it"
            message = f"`{text}` runs {lets}, and the others go on to `{found.met.text}`"
            yield finding_at(
                RULE,
                op,
                message,
                JOIN,
                certainty=sure,
                taints=taints[:2],
                calls=found.step.calls,
                reached=found.met,
            )
