"""Short forms for the facts that recur in every table.

They keep the tables readable as tables: one line says what kind of call it is, the name in the trace, where
the group stands and which arguments it fills.
"""

from __future__ import annotations

from typing import Any

from .fact import Arg, Fact

WORK = "torch.distributed.Work"
WORKS = "torch.distributed.Work, a list of them"
P2P = "p2p-message"  # the event of making one for a batch
GROUP = "torch.distributed.ProcessGroup"
METRIC = "torchmetrics.Metric"
ENTRY_METRIC = "torchmetrics.Metric, of which each update is an entry that is gathered on its own"
ENTRY_STATE = "torchmetrics.Metric, a list in it whose items are gathered one by one"
LOCAL_METRIC = "torchmetrics.Metric, told not to synchronise"
MODULE = "torch.nn.Module"

UNIFORM = Fact(result="uniform")
PURE = Fact()
RANK = Fact(result="varying", varying="rank")
GROUP_RANK = Fact(result="varying", varying="group-rank")
LOCAL_RANK = Fact(result="varying", varying="rank", event="local-rank")
NODE_RANK = Fact(result="varying", varying="rank", event="node-rank")
WORLD_SIZE = Fact(result="uniform", event="world-size")
IS_MAIN = Fact(result="varying", varying="rank", main_only="main")
IS_LOCAL_MAIN = Fact(result="varying", varying="rank", main_only="local_main")
IS_LAST = Fact(result="varying", varying="rank", main_only="last")
DATA = Fact(result="varying", varying="data")
BARRIER = Fact(op="barrier", kind="collective", result="uniform", event="barrier")
MAIN_DECORATOR = Fact(wraps="decorator", main_only="main")


# in the text of a project whose parameters are sharded by settings of Accelerate, Fabric or a launcher
SHARDS = r"FullyShardedDataParallelPlugin|fsdp_plugin|FSDPStrategy|strategy\s*=\s*[\"']fsdp|FULL_SHARD"


def agreed(op: str, group: Arg | None = None, *buffers: Arg, **more: Any) -> Fact:
    """A collective after which the result and ``buffers`` are the same on every rank of the group."""
    return Fact(op=op, kind="collective", group=group, buffers=buffers, result="uniform", **more)


def exchanged(op: str, group: Arg | None = None, *outputs: Arg, **more: Any) -> Fact:
    """A collective that leaves rank-varying data in the result and in ``outputs``."""
    return Fact(
        op=op, kind="collective", group=group, outputs=outputs, result="varying", varying="data", **more
    )


def lifecycle(op: str, group: Arg | None = None, event: str = "", **more: Any) -> Fact:
    """A call that makes or ends groups, made by every rank in the same order."""
    more.setdefault("result", "uniform")
    return Fact(op=op, kind="lifecycle", group=group, event=event, **more)


def paired(op: str, group: Arg | None = None, *outputs: Arg, **more: Any) -> Fact:
    """A point-to-point call."""
    if outputs:
        more.update(result="varying", varying="data")
    return Fact(op=op, kind="point-to-point", group=group, outputs=outputs, **more)


def choosing(name: str, index: int = 0) -> Fact:
    """A call by which each rank says whether its backward pass communicates."""
    return Fact(event="sync-choice", invariant=(Arg(index, name),))


def local(event: str = "", **more: Any) -> Fact:
    """A rank-local operation that may raise on one rank alone."""
    return Fact(raises_local=True, event=event, **more)


def varying(kind: str, **more: Any) -> Fact:
    """A call whose result differs between ranks for the reason ``kind``."""
    return Fact(result="varying", varying=kind, **more)
