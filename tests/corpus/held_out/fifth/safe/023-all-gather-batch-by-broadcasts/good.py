import os
from typing import List, Tuple

import torch
import torch.distributed as dist


class Replicas:
    """Keeps copies of the peers' tensors; the peers are ranks r, r+jump, r+2*jump..."""

    def __init__(self, jump: int, factor: int):
        world = dist.get_world_size()
        if world % (jump * factor):
            raise ValueError("world size must be a multiple of jump * factor")
        self.group = None
        for base in range(0, world, jump * factor):
            for i in range(jump):
                ranks = list(range(base + i, base + jump * factor, jump))
                pg = dist.new_group(ranks)
                if dist.get_rank() in ranks:
                    self.group, self.ranks = pg, ranks

    def all_gather_tensors(self, tensors: List[torch.Tensor]) -> List[List[torch.Tensor]]:
        spec: List[Tuple] = [(tuple(t.shape), t.dtype) for t in tensors]
        specs = [None] * len(self.ranks)
        dist.all_gather_object(specs, spec, group=self.group)
        device = torch.device("cuda", torch.cuda.current_device())
        out = []
        for src, src_spec in zip(self.ranks, specs):
            mine = src == dist.get_rank()
            received = []
            for i, (shape, dtype) in enumerate(src_spec):
                if mine:
                    buf = tensors[i].to(device).contiguous()
                else:
                    buf = torch.empty(shape, dtype=dtype, device=device)
                dist.broadcast(buf, src=src, group=self.group)
                received.append(buf.cpu())
            out.append(received)
        return out


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank = dist.get_rank()
    replicas = Replicas(jump=int(os.environ["LOCAL_WORLD_SIZE"]), factor=2)
    # ranks own different numbers of experts
    experts = [torch.randn(128, 64 * (1 + rank % 2)) for _ in range(1 + rank % 3)]
    copies = replicas.all_gather_tensors(experts)
    os.makedirs("/ssd/replicas", exist_ok=True)
    torch.save(dict(zip(replicas.ranks, copies)), f"/ssd/replicas/{rank}.pt")
    print(rank, [len(c) for c in copies])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
