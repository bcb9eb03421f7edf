import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def step_loss(mesh, local):
    """Sum over tp everywhere; the mean over dp only where it is logged."""
    dist.all_reduce(local, group=mesh.get_group("tp"))
    if mesh.get_local_rank("tp") != 0:
        return None
    dist.all_reduce(local, group=mesh.get_group("dp"))
    return local.item() / mesh.size(0)


def main():
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("dp", "tp"))
    for _ in range(3):
        loss = step_loss(mesh, torch.tensor([1.0]))
        if loss is not None:
            assert loss == 2.0
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
