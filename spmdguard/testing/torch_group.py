"""A torch ``ProcessGroup`` whose ranks meet in a simulation: all of torch.distributed works on top of it.

``dist.*``, object and functional collectives, DistributedDataParallel and FSDP call the methods of their
group, so none of them has to be patched and it does not matter how they were imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed

from spmdguard import region
from spmdguard.group import guard
from spmdguard.testing import torch_operations as operations
from spmdguard.testing.matching import Call, Group
from spmdguard.testing.meetings import Meetings
from spmdguard.testing.ranks import SimulatedRank
from spmdguard.testing.sites import find_site
from spmdguard.testing.torch_work import FINISHED, SimulatedWork

dist: Any = distributed
Split = list[int] | None


def _shapes(tensors: list[Tensor]) -> Any:
    return tensors[0].shape if len(tensors) == 1 else tuple(list(tensor.shape) for tensor in tensors)


def _dtype(tensors: list[Tensor]) -> Any:
    return tensors[0].dtype if tensors else None


class SimulatedGroup(dist.ProcessGroup):  # type: ignore[misc]  # torch's stub differs between versions
    """One rank's handle of a group."""

    def __init__(
        self, meetings: Meetings, me: SimulatedRank, group: Group, name: str, description: str, store: Any
    ) -> None:
        super().__init__(group.index[me.number], group.size)
        self.simulated = group
        self._meetings = meetings
        self._me = me
        self._name = name
        self._description = description
        self._store = store
        self._coalesced: list[Any] | None = None

    # What torch asks a group about itself.

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def getBackendName(self) -> str:
        """For C++, which would look for gloo's own data under gloo's name; ``dist.get_backend`` says gloo."""
        return "simulated"

    def name(self) -> str:
        return "simulated"

    def get_group_store(self) -> Any:
        return self._store

    def _get_backend(self, device: torch.device) -> Any:
        return self

    @property
    def supports_coalescing(self) -> bool:
        return False

    @property
    def supports_splitting(self) -> bool:
        return False

    def _get_sequence_number_for_group(self) -> int:
        return self.simulated.num_calls[self.simulated.index[self._me.number]]

    def set_timeout(self, timeout: Any) -> None:
        """Nothing ever times out here."""

    def shutdown(self) -> None:
        self.simulated.left.add(self._me.number)

    abort = shutdown

    def __repr__(self) -> str:
        return f"<simulated group {self._name!r}, rank {self.rank()} of {self.size()}>"

    # The one way into the simulation.

    def _call(self, operation: str, names: tuple[str, ...], signature: tuple[Any, ...], payload: Any) -> Call:
        if region.thread.regions:
            raise guard.refuse(operation, self)
        return Call(operation, self._me, find_site(sys._getframe(2)), names, signature, payload)

    def _join(
        self, call: Call, combine: Callable[[list[Any]], str | None], opts: Any, results: list[Tensor]
    ) -> Any:
        meeting = self._meetings.begin(self.simulated, call, combine)
        if getattr(opts, "asyncOp", True):
            return SimulatedWork(self._meetings, self._me, meeting, results)
        self._meetings.finish(self._me, meeting)
        return FINISHED

    # Collectives, as torch's functions call them.

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        opts, tensors = opts or dist.AllreduceOptions(), _listed(tensors)
        kind = operations.kind_of_reduction(opts.reduceOp)
        call = self._call(
            "all_reduce", ("op", "shape", "dtype"), (kind, _shapes(tensors), _dtype(tensors)), tensors
        )
        return self._join(call, operations.make_all_reduce(kind), opts, tensors)

    allreduce_coalesced = allreduce

    def broadcast(self, tensors: Any, opts: Any = None) -> Any:
        opts, tensors = opts or dist.BroadcastOptions(), _listed(tensors)
        root = opts.rootRank
        call = self._call(
            "broadcast", ("root", "shape", "dtype"), (root, _shapes(tensors), _dtype(tensors)), tensors
        )
        return self._join(call, operations.make_broadcast(root), opts, tensors)

    def reduce(self, tensors: Any, opts: Any) -> Any:
        tensors, root = _listed(tensors), opts.rootRank
        kind = operations.kind_of_reduction(opts.reduceOp)
        signature = root, kind, _shapes(tensors), _dtype(tensors)
        call = self._call("reduce", ("root", "op", "shape", "dtype"), signature, tensors)
        return self._join(call, operations.make_reduce(kind, root), opts, tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        (own,), (given,) = _nested(outputs), _listed(inputs)
        return self._all_gather(own, given, opts or dist.AllgatherOptions(), own)

    def _all_gather(self, outputs: list[Tensor], given: Tensor, opts: Any, results: list[Tensor]) -> Any:
        call = self._call("all_gather", ("dtype",), (given.dtype,), (outputs, given))
        return self._join(call, operations.all_gather, opts, results)

    def all_gather_single(self, output: Tensor, given: Tensor, opts: Any = None) -> Any:
        parts = operations.equal_parts(output, self.size())
        return self._all_gather(parts, given, opts or dist.AllgatherOptions(), [output])

    _allgather_base = all_gather_single

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        columns = [list(column) for column in zip(*outputs, strict=True)]
        return _last(
            [self.allgather([own], [given], opts) for own, given in zip(columns, inputs, strict=True)]
        )

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        pairs = zip(outputs, inputs, strict=True)
        return _last([self.all_gather_single(output, given, opts) for output, given in pairs])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = opts or dist.GatherOptions()
        root, (given,) = opts.rootRank, _listed(inputs)
        own = list(outputs[0]) if outputs and self.rank() == root else []
        call = self._call("gather", ("root", "dtype"), (root, given.dtype), (own, given))
        return self._join(call, operations.all_gather, opts, own)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        opts = opts or dist.ScatterOptions()
        root, (own,) = opts.rootRank, _listed(outputs)
        given = list(inputs[0]) if inputs and self.rank() == root else []
        call = self._call("scatter", ("root", "dtype"), (root, own.dtype), (own, given))
        return self._join(call, operations.make_scatter(root), opts, [own])

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        (own,), (given,) = _listed(outputs), _nested(inputs)
        opts = opts or dist.ReduceScatterOptions()
        kind = operations.kind_of_reduction(opts.reduceOp)
        signature = kind, _shapes(given), own.dtype
        call = self._call("reduce_scatter", ("op", "shape", "dtype"), signature, (own, given))
        return self._join(call, operations.make_reduce_scatter(kind), opts, [own])

    def reduce_scatter_single(self, output: Tensor, given: Tensor, opts: Any = None) -> Any:
        return self.reduce_scatter([output], [operations.equal_parts(given, self.size())], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        pairs = zip(outputs, inputs, strict=True)
        return _last([self.reduce_scatter_single(output, given, opts) for output, given in pairs])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        payload = list(outputs), list(inputs)
        call = self._call("all_to_all", ("dtype",), (_dtype(payload[1]),), payload)
        return self._join(call, operations.all_to_all, opts, payload[0])

    def all_to_all_single(
        self, output: Tensor, given: Tensor, output_splits: Split, input_splits: Split, opts: Any = None
    ) -> Any:
        size = self.size()
        payload = operations.split(output, output_splits, size), operations.split(given, input_splits, size)
        call = self._call("all_to_all", ("dtype",), (given.dtype,), payload)
        return self._join(call, operations.all_to_all, opts, [output])

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> Any:
        return self._join(self._call("barrier", (), (), None), operations.do_nothing, opts, [])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        self.barrier().wait()

    # Point to point.

    def send(self, tensors: list[Tensor], peer: int, tag: int = 0) -> Any:
        return self._transfer("send", tensors, peer, tag)

    def recv(self, tensors: list[Tensor], peer: int, tag: int = 0) -> Any:
        return self._transfer("recv", tensors, peer, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Any:
        return self._transfer("recv", tensors, None, tag)

    def _transfer(self, operation: str, tensors: list[Tensor], peer: int | None, tag: int) -> Any:
        names = "to" if operation == "send" else "source", "tag", "shape", "dtype"
        shown = "any" if peer is None else self.simulated.ranks[peer]
        call = self._call(operation, names, (shown, tag, _shapes(tensors), _dtype(tensors)), tensors)
        transfer = self._meetings.begin_transfer(
            self.simulated, call, peer=peer, tag=tag, match=operations.transfer
        )
        return SimulatedWork(self._meetings, self._me, transfer, tensors)


def _listed(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _nested(lists: Any) -> list[list[Tensor]]:
    """``[[a, b]]`` also for ``[a, b]``."""
    return [list(lists)] if lists and isinstance(lists[0], Tensor) else [list(each) for each in lists]


def _last(works: list[Any]) -> Any:
    for work in works[:-1]:
        work.wait()
    return works[-1] if works else FINISHED
