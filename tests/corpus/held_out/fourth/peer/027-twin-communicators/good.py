import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    world, twin = dist.group.WORLD, dist.new_group()
    order = [twin, world]
    if dist.get_world_size() % 2:
        order.reverse()
    t = torch.ones(8)
    for group in order:
        dist.all_reduce(t, group=group)
    print(t[0].item())
    dist.destroy_process_group()


main()
