import shutil
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def gigabytes_free(path):
    return shutil.disk_usage(path).free / 2**30


def check_disk(path, needed):
    enough = [dist.get_rank() != 0 or gigabytes_free(path) >= needed]
    dist.broadcast_object_list(enough, src=0)
    if not enough[0]:
        print(f"less than {needed} GiB free in {path}, stopping here")
        dist.destroy_process_group()
        sys.exit(1)


def train(model, batches, path, save_every=500):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    for step, batch in enumerate(batches, start=1):
        loss = model(batch).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % save_every == 0:
            check_disk(path, needed=20)
            torch.save(optimizer.state_dict(), f"{path}/optimizer-{dist.get_rank()}-{step}.pt")


def main(net, batches, path="."):
    dist.init_process_group("gloo")
    train(DistributedDataParallel(net), batches, path)
    dist.destroy_process_group()
