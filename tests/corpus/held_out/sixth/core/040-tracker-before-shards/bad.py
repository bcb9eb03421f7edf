import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

TRACKER = "latest_checkpointed_iteration.txt"


@dataclass
class SaveArgs:
    save: str
    interval: int = 500
    lr: float = 1e-4


def iter_dir(root, it):
    return os.path.join(root, f"iter_{it:07d}")


def save(args, it, expert, optim):
    """Every rank owns other experts, so every rank has a file in the directory."""
    rank = dist.get_rank()
    folder = iter_dir(args.save, it)
    os.makedirs(folder, exist_ok=True)
    payload = {
        "expert": expert.state_dict(),
        "optim": optim.state_dict(),
        "rng": torch.get_rng_state(),
        "cuda_rng": torch.cuda.get_rng_state(),
    }
    torch.save(payload, os.path.join(folder, f"rank_{rank:05d}.pt"))
    if rank == 0:
        tracker = os.path.join(args.save, TRACKER)
        with open(tracker + ".tmp", "w") as f:
            f.write(str(it))
        os.replace(tracker + ".tmp", tracker)
    dist.barrier()


def load(args, expert, optim):
    tracker = os.path.join(args.save, TRACKER)
    found = [None]
    if dist.get_rank() == 0 and os.path.exists(tracker):
        with open(tracker) as f:
            found[0] = int(f.read())
    dist.broadcast_object_list(found, src=0)
    if found[0] is None:
        return 0
    state = torch.load(os.path.join(iter_dir(args.save, found[0]), f"rank_{dist.get_rank():05d}.pt"), map_location="cpu")
    expert.load_state_dict(state["expert"])
    optim.load_state_dict(state["optim"])
    torch.set_rng_state(state["rng"])
    torch.cuda.set_rng_state(state["cuda_rng"])
    return found[0]


def moe_step(expert, x):
    world = dist.get_world_size()
    inbox = torch.empty_like(x)
    dist.all_to_all_single(inbox, x)
    y = expert(inbox)
    return (y - inbox).pow(2).mean() / world


def main(args=SaveArgs("moe_ckpt"), iters=100_000):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    world = dist.get_world_size()
    torch.manual_seed(11 + dist.get_rank())
    expert = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    optim = torch.optim.AdamW(expert.parameters(), lr=args.lr)
    start = load(args, expert, optim)
    for it in range(start + 1, iters + 1):
        loss = moe_step(expert, torch.randn(64 * world, 512, device="cuda"))
        optim.zero_grad()
        loss.backward()
        optim.step()
        if it % args.interval == 0:
            save(args, it, expert, optim)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
