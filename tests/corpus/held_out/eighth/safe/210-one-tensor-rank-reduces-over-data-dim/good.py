import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def log_loss(mesh, loss):
    """The tensor ranks hold equal losses; only the first of them averages over data ranks."""
    if mesh.get_local_rank("tp") == 0:
        group = mesh.get_group("dp")
        mean = loss.clone()
        dist.all_reduce(mean, group=group)
        return (mean / dist.get_world_size(group)).item()
    return None


def main():
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    tp = 2 if world % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (world // tp, tp), mesh_dim_names=("dp", "tp"))
    loss = torch.tensor([float(mesh.get_local_rank("dp"))])
    mean = log_loss(mesh, loss)
    if mean is not None:
        assert mean == (world // tp - 1) / 2
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
