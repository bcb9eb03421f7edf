import os
import re
from typing import Optional

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def newest(folder: str) -> Optional[str]:
    if not os.path.isdir(folder):
        return None
    steps = [(int(m.group(1)), d) for d in os.listdir(folder) if (m := re.fullmatch(r"ba(\d+)", d))]
    return os.path.join(folder, max(steps)[1]) if steps else None


def find_resume(folder: str, run_name: str) -> Optional[str]:
    choice = [None]
    if dist.get_rank() == 0:
        choice = [newest(os.path.join(folder, run_name))]
    dist.broadcast_object_list(choice, src=0)
    path = choice[0]
    if path is None:
        return None
    mine = os.path.join(path, f"rank{dist.get_rank()}.pt")
    there = [None] * dist.get_world_size()
    dist.all_gather_object(there, os.path.exists(mine))
    if not any(there):
        return None
    missing = [r for r, ok in enumerate(there) if not ok]
    if missing:
        raise RuntimeError(f"{path}: ranks {missing} have no shard, set load_path to an older checkpoint")
    return mine


class Trainer:
    def __init__(self, model, run_name, save_folder="/ckpt"):
        self.model = FSDP(model.cuda())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.step = 0
        resume = find_resume(save_folder, run_name)
        if resume is not None:
            self.load(resume)

    def load(self, path):
        state = torch.load(path, map_location="cpu")
        self.step = state["step"]
        lo = torch.tensor([self.step], device="cuda")
        hi = lo.clone()
        dist.all_reduce(lo, op=dist.ReduceOp.MIN)
        dist.all_reduce(hi, op=dist.ReduceOp.MAX)
        if lo.item() != hi.item():
            raise RuntimeError(f"checkpoints of different steps: {lo.item()}..{hi.item()}")
        self.opt.load_state_dict(state["opt"])

    def fit(self, until):
        while self.step < until:
            self.model(torch.randn(4, 128, device="cuda")).mean().backward()
            self.opt.step()
            self.opt.zero_grad()
            self.step += 1


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    Trainer(torch.nn.Linear(128, 128), os.environ["RUN_NAME"]).fit(1000)
    dist.destroy_process_group()
