import glob
import json
import os

import torch
import torch.distributed as dist


def log0(msg):
    if int(os.environ.get("RANK", 0)) == 0:
        print(msg)


def save_checkpoint(checkpoint_dir, step, model_data, optimizer_data, meta_data, rank=0):
    if rank == 0:
        os.makedirs(checkpoint_dir, exist_ok=True)
        torch.save(model_data, os.path.join(checkpoint_dir, f"model_{step:06d}.pt"))
        with open(os.path.join(checkpoint_dir, f"meta_{step:06d}.json"), "w") as f:
            json.dump(meta_data, f, indent=2)
        log0(f"saved model for step {step}")
    # the optimizer is sharded: every rank keeps its own part
    if optimizer_data is not None:
        path = os.path.join(checkpoint_dir, f"optim_{step:06d}_rank{rank}.pt")
        torch.save(optimizer_data, path)


def last_step(checkpoint_dir):
    files = glob.glob(os.path.join(checkpoint_dir, "model_*.pt"))
    if not files:
        raise FileNotFoundError(checkpoint_dir)
    return max(int(os.path.basename(f).split("_")[-1].split(".")[0]) for f in files)


class ShardedSGD:
    """Momentum lives only on the rank that owns the parameter."""

    def __init__(self, params, lr, rank, world):
        self.params, self.lr, self.rank, self.world = list(params), lr, rank, world
        self.buf = {i: torch.zeros_like(p) for i, p in enumerate(self.params) if i % world == rank}

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            if i in self.buf:
                self.buf[i].mul_(0.9).add_(p.grad / self.world)
                p.add_(self.buf[i], alpha=-self.lr)
            dist.broadcast(p.data, src=i % self.world)
            p.grad = None


def main(steps=2000, out="out/base/d4"):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(512, 64), torch.nn.Linear(64, 512))
    opt = ShardedSGD(model.parameters(), 0.02, rank, world)
    for step in range(1, steps + 1):
        x = torch.randint(0, 512, (8, 65), generator=torch.Generator().manual_seed(step * world + rank))
        logits = model(x[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        opt.step()
    save_checkpoint(out, steps, model.state_dict(), opt.buf, {"step": steps, "loss": loss.item()}, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
