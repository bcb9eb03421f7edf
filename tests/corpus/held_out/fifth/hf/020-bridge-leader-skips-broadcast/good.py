from dataclasses import dataclass
from typing import List

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class GridPair:
    src_ranks: tuple
    dst_ranks: tuple

    @property
    def src_leader(self) -> int:
        return self.src_ranks[0]

    @property
    def dst_leader(self) -> int:
        return self.dst_ranks[0]


class BridgeCommunicator:
    """Moves activations from the last stage of one grid to the first of another."""

    def __init__(self, pair: GridPair, dtype=torch.bfloat16):
        self.pair = pair
        self.dtype = dtype
        self.rank = dist.get_rank()
        self.device = torch.device("cuda", torch.cuda.current_device())
        # created on all ranks at construction, never on first use
        self.dst_group = dist.new_group(list(pair.dst_ranks))

    def send_forward(self, tensors: List[torch.Tensor]) -> None:
        if self.rank != self.pair.src_leader:
            return
        dist.send_object_list([[tuple(t.shape) for t in tensors]], dst=self.pair.dst_leader)
        for t in tensors:
            if t.numel():
                dist.send(t.contiguous(), dst=self.pair.dst_leader)

    def _recv_from_source(self) -> List[torch.Tensor]:
        box = [None]
        dist.recv_object_list(box, src=self.pair.src_leader)
        tensors = []
        for shape in box[0]:
            buf = torch.empty(shape, dtype=self.dtype, device=self.device)
            if buf.numel():
                dist.recv(buf, src=self.pair.src_leader)
            tensors.append(buf)
        return tensors

    def recv_forward(self) -> List[torch.Tensor]:
        leader = self.pair.dst_leader
        if self.rank == leader:
            tensors = self._recv_from_source()
            shapes = [[tuple(t.shape) for t in tensors]]
            dist.broadcast_object_list(shapes, src=leader, group=self.dst_group)
            for t in tensors:
                if t.numel():
                    dist.broadcast(t, src=leader, group=self.dst_group)
            return tensors
        shapes = [None]
        dist.broadcast_object_list(shapes, src=leader, group=self.dst_group)
        tensors = []
        for shape in shapes[0]:
            buf = torch.empty(shape, dtype=self.dtype, device=self.device)
            if buf.numel():
                dist.broadcast(buf, src=leader, group=self.dst_group)
            tensors.append(buf)
        return tensors


def forward_across(bridge: BridgeCommunicator, encoder, llm, micro_batch):
    if bridge.rank in bridge.pair.src_ranks:
        outputs = encoder(micro_batch["images"], micro_batch["audio"])
        bridge.send_forward(outputs)
        return None
    if bridge.rank in bridge.pair.dst_ranks:
        return llm(micro_batch["tokens"], bridge.recv_forward())
    return None
