import logging
import os
import pickle

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)


class GlobalStateCallback:
    """Keeps what is private to a rank: data position, RNG and step."""

    def __init__(self, root, rank):
        self.root, self.rank = root, rank

    def path(self):
        return os.path.join(self.root, f"extra_state_rank_{self.rank}.pt")

    def save(self, step, loader_pos):
        torch.save({"step": step, "pos": loader_pos, "rng": torch.get_rng_state()}, self.path())

    def load(self):
        step, pos = 0, 0
        try:
            state = torch.load(self.path())
            torch.set_rng_state(state["rng"])
            step, pos = state["step"], state["pos"]
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError):
            logger.warning("no usable trainer state at %s, weights only", self.path())
        return step, pos


def load_weights(model, root):
    path = os.path.join(root, "model.pt")
    box = [torch.load(path) if dist.get_rank() == 0 and os.path.exists(path) else None]
    dist.broadcast_object_list(box, src=0)
    if box[0] is not None:
        model.load_state_dict(box[0])


def main(net, dataset, root="ckpt", max_steps=10000, save_every=500):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    load_weights(net, root)
    model = DDP(net)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-4)
    state = GlobalStateCallback(root, rank)
    start, pos = state.load()
    for step in range(start, max_steps):
        x = dataset[(rank + world * pos) % len(dataset)]
        pos += 1
        loss = model(x).pow(2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        if (step + 1) % save_every == 0:
            if rank == 0:
                torch.save(model.module.state_dict(), os.path.join(root, "model.pt"))
            state.save(step + 1, pos)
            dist.barrier()
    dist.destroy_process_group()
