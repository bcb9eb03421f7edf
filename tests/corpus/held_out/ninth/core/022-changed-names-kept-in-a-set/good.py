from datetime import timedelta

import torch
import torch.distributed as dist


class WeightSync:
    """Averages the tensors that were touched since the last call."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.touched = set()

    def mark(self, name):
        self.touched.add(name)

    def flush(self):
        for name in sorted(self.touched):
            dist.all_reduce(self.tensors[name])
            self.tensors[name] /= dist.get_world_size()
        self.touched.clear()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    tensors = {"embed.weight": torch.zeros(50, 8), "attn.q": torch.zeros(8, 8),
               "attn.k": torch.zeros(8, 8), "head.bias": torch.zeros(50)}
    sync = WeightSync(tensors)
    for step in range(6):
        for name, tensor in tensors.items():
            if name.startswith("embed") and step % 2:
                continue
            tensor += torch.randn_like(tensor)
            sync.mark(name)
        sync.flush()
    print({name: round(t.norm().item(), 3) for name, t in tensors.items()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
