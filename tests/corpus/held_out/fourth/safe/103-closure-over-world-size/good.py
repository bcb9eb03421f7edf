import torch
import torch.distributed as dist


def make_reducer(active, label):
    def reduce(t):
        if active:
            dist.all_reduce(t)
        print(f"[{label}] {t.sum().item():.1f}")
        return t

    return reduce


dist.init_process_group("gloo")
reduce = make_reducer(active=dist.get_world_size() > 1, label=dist.get_rank())
for _ in range(3):
    reduce(torch.ones(4))
dist.destroy_process_group()
