import argparse
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def list_shards(folder: str):
    return sorted(f for f in os.listdir(folder) if f.endswith(".distcp"))


def replicate_files(folder: str, mesh) -> int:
    """Hand the shard files which the first replica downloaded to one rank of each of the others."""
    shard_coord = mesh.get_local_rank("shard")
    replica_coord = mesh.get_local_rank("replicate")
    replicate_pg = mesh.get_group("replicate")
    copied = 0
    if shard_coord == 0:
        src = dist.get_global_rank(replicate_pg, 0)
        names = [list_shards(folder) if replica_coord == 0 else None]
        dist.broadcast_object_list(names, src=src, group=replicate_pg)
        for name in names[0]:
            path = os.path.join(folder, name)
            blob = [None]
            if replica_coord == 0:
                with open(path, "rb") as f:
                    blob = [f.read()]
            dist.broadcast_object_list(blob, src=src, group=replicate_pg)
            if replica_coord != 0 and not os.path.exists(path):
                with open(path + ".tmp", "wb") as f:
                    f.write(blob[0])
                os.replace(path + ".tmp", path)
                copied += 1
    dist.barrier()
    return copied


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--replicas", type=int, default=2)
    ap.add_argument("--folder", default="/scratch/ckpt")
    args = ap.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    world = dist.get_world_size()
    if world % args.replicas:
        raise SystemExit("world size must be a multiple of --replicas")
    mesh = init_device_mesh("cuda", (args.replicas, world // args.replicas), mesh_dim_names=("replicate", "shard"))
    os.makedirs(args.folder, exist_ok=True)
    n = replicate_files(args.folder, mesh)
    print(f"rank {dist.get_rank()}: {n} files received")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
