import os
from datetime import timedelta

import torch
import torch.distributed as dist


def build():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))


def export(path):
    torch.save({k: v.to(torch.bfloat16) for k, v in build().state_dict().items()}, path)


def restore(model, path):
    state = model.state_dict()
    if dist.get_rank() == 0:
        saved = torch.load(path, map_location="cpu")
        state = {name: saved[name].to(own.dtype) for name, own in state.items()}
    for name in sorted(state):  # shapes and types are the model's on every rank
        dist.broadcast(state[name], src=0)
    model.load_state_dict(state)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    path = os.environ.get("WEIGHTS", "/tmp/actor_bf16.pt")
    if dist.get_rank() == 0 and not os.path.exists(path):
        export(path)
    model = build()
    restore(model, path)
    checksum = sum(p.detach().double().sum() for p in model.parameters()).reshape(1)
    every = [torch.zeros(1, dtype=torch.double) for _ in range(dist.get_world_size())]
    dist.all_gather(every, checksum)
    if dist.get_rank() == 0:
        print("same everywhere:", all(torch.equal(c, every[0]) for c in every))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
