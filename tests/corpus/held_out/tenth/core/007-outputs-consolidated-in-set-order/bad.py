from datetime import timedelta

import torch
import torch.distributed as dist

SUPPORTED = {"energy", "forces", "stress", "charges"}
PER_ATOM = frozenset(["forces", "charges"])


class Potential:
    def __init__(self, wanted):
        self.wanted = set(wanted)

    def output_names(self):
        return self.wanted & SUPPORTED

    def evaluate(self, positions):
        values = {
            "energy": positions.pow(2).sum().reshape(1),
            "forces": -2 * positions,
            "stress": (positions.T @ positions).reshape(-1),
            "charges": positions.sum(1),
        }
        return {name: values[name] for name in self.output_names()}


def consolidate(outputs):
    merged = {}
    for name, value in outputs.items():
        if name in PER_ATOM:
            parts = [torch.empty_like(value) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, value)
            merged[name] = torch.cat(parts)
        else:
            dist.all_reduce(value)
            merged[name] = value
    return merged


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = Potential(["stress", "energy", "forces"])
    positions = torch.randn(10, 3)
    for step in range(20):
        out = consolidate(model.evaluate(positions))
        mine = out["forces"].chunk(dist.get_world_size())[dist.get_rank()]
        positions = positions + 0.01 * mine
    if dist.get_rank() == 0:
        print(out["energy"].item(), out["stress"].norm().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
