import os
import tempfile

import torch
import torch.distributed as dist


def shard_name(step, rank, world):
    return f"step{step:06d}-{rank:05d}-of-{world:05d}.pt"


def save(folder, step, state):
    rank, world = dist.get_rank(), dist.get_world_size()
    path = os.path.join(folder, shard_name(step, rank, world))
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)
    dist.barrier()
    if rank == 0:
        marker = os.path.join(folder, "latest")
        with open(marker + ".tmp", "w") as f:
            f.write(str(step))
        os.replace(marker + ".tmp", marker)
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    save(folder[0], 12, {"w": torch.ones(2) * dist.get_rank()})
    with open(os.path.join(folder[0], "latest")) as f:
        assert f.read() == "12"
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
