import torch
import torch.distributed as dist


def build(size, width):
    rank, mine = dist.get_rank(), {}
    for start in range(0, size, width):
        members = list(range(start, start + width))
        group = dist.new_group(members)
        if rank in members:
            mine["row"] = group
    for start in range(width):
        members = list(range(start, size, width))
        group = dist.new_group(members)
        if rank in members:
            mine["column"] = group
    return mine


def main():
    dist.init_process_group("gloo")
    groups = build(dist.get_world_size(), width=2)
    t = torch.ones(1)
    dist.all_reduce(t, group=groups["row"])
    dist.all_reduce(t, group=groups["column"])
    assert t.item() == dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
