from datetime import timedelta

import torch.distributed as dist


def emit(*parts, fence=False, **extra):
    line = " ".join(str(p) for p in parts)
    if fence:
        dist.barrier()
    for key, value in extra.items():
        line += f" {key}={value}"
    return line


dist.init_process_group("gloo", timeout=timedelta(seconds=5))
common = {"fence": True, "epoch": 1}
print(emit("start", **common))
special = {"fence": dist.get_rank() == 0, "epoch": 2}
print(emit("loss", 0.25, **special))
dist.destroy_process_group()
