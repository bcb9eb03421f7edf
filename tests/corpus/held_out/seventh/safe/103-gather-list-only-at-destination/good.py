import torch
import torch.distributed as dist

KEEPER = 0


def collect_step_times(seconds):
    """Table of all ranks' step times on the keeper, None on the others."""
    mine = torch.tensor(seconds, dtype=torch.float64)
    if dist.get_rank() == KEEPER:
        rows = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    else:
        rows = None
    dist.gather(mine, gather_list=rows, dst=KEEPER)
    if rows is None:
        return None
    return torch.stack(rows)


def main():
    dist.init_process_group("gloo")
    table = collect_step_times([0.1 + dist.get_rank(), 0.2, 0.3])
    if table is not None:
        slow = table.mean(dim=1).argmax().item()
        print(f"straggler: rank {slow}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
