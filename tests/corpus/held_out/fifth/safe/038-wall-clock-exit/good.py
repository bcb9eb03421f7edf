import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType

T0 = time.time()


@dataclass
class Config:
    steps: int = 10_000
    exit_minutes: float = 230.0
    save_every: int = 500
    folder: str = "/ckpt/run"


def save(model, step, folder):
    cfg = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, cfg):
        state = model.state_dict()
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
        torch.save(state, f"{folder}/{step}.pt.tmp")
        os.replace(f"{folder}/{step}.pt.tmp", f"{folder}/{step}.pt")
    dist.barrier()


def out_of_time(limit_minutes: float) -> bool:
    minutes = (time.time() - T0) / 60.0
    done = torch.tensor([minutes > limit_minutes], dtype=torch.int, device="cuda")
    dist.all_reduce(done, op=dist.ReduceOp.MAX)
    return bool(done.item())


def checkpoint_and_decide_exit(model, cfg: Config, step: int) -> bool:
    saved = False
    if step % cfg.save_every == 0:
        save(model, step, cfg.folder)
        saved = True
    if cfg.exit_minutes and out_of_time(cfg.exit_minutes):
        if not saved:
            save(model, step, cfg.folder)
        return True
    return False


def main():
    cfg = Config()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = FSDP(torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(1, cfg.steps + 1):
        model(torch.randn(16, 1024, device="cuda")).square().mean().backward()
        model.clip_grad_norm_(1.0)
        opt.step()
        opt.zero_grad()
        if checkpoint_and_decide_exit(model, cfg, step):
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
