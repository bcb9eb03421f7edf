from datetime import timedelta

import torch
import torch.distributed as dist


def averaged(v):
    t = torch.tensor(float(v))
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    logs = {"loss": 0.5, "acc": 0.9}
    out = {k: averaged(logs[k]) for k in sorted(logs)}
    if dist.get_rank() == 0:
        out["lr"] = 1e-3
    print(out)
    dist.destroy_process_group()


main()
