import os
from typing import Any, Dict, List

import torch
import torch.distributed as dist


def to_cpu(x: Any) -> Any:
    if torch.is_tensor(x):
        return x.detach().cpu()
    if isinstance(x, dict):
        return {k: to_cpu(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(to_cpu(v) for v in x)
    return x


class ShardedOptim:
    """Greedy partition of the parameters; the owner steps and broadcasts them."""

    def __init__(self, params, cls, **kwargs):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.params = list(params)
        load = [0] * self.world
        self.owner = []
        for p in self.params:
            r = load.index(min(load))
            load[r] += p.numel()
            self.owner.append(r)
        mine = [p for p, r in zip(self.params, self.owner) if r == self.rank]
        self.optim = cls(mine, **kwargs) if mine else None
        self._all_states: List[Dict] = []

    def step(self):
        if self.optim is not None:
            self.optim.step()
        for p, r in zip(self.params, self.owner):
            dist.broadcast(p.data, src=r)

    def consolidate(self, recipient: int = 0) -> None:
        self._all_states = []
        keep = self.rank == recipient or recipient == -1
        for rank in range(self.world):
            if rank == self.rank:
                state = to_cpu(self.optim.state_dict()) if self.optim is not None else {}
                if keep:
                    self._all_states.append(state)
                send = self.rank != recipient
                dist.broadcast_object_list([state if send else None], src=rank)
            else:
                box = [None]
                dist.broadcast_object_list(box, src=rank)
                if keep:
                    self._all_states.append(box[0])

    def state_dict(self) -> Dict:
        if not self._all_states:
            raise RuntimeError("call consolidate() on all the ranks first")
        return {"owner": self.owner, "shards": self._all_states}


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)).cuda())
    opt = ShardedOptim(model.parameters(), torch.optim.Adam, lr=1e-3)
    for step in range(1, 301):
        model(torch.randn(32, 256, device="cuda")).square().mean().backward()
        opt.step()
        model.zero_grad()
        if step % 100 == 0:
            opt.consolidate(recipient=0)
            if dist.get_rank() == 0:
                torch.save({"model": model.module.state_dict(), "optim": opt.state_dict()}, f"/ckpt/{step}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
