import torch
import torch.distributed as dist


def gather_to_main(record, dst=0):
    """List of records by rank on ``dst``, None elsewhere."""
    rank = dist.get_rank()
    room = [None] * dist.get_world_size() if rank == dst else None
    dist.gather_object(record, room, dst=dst)
    if rank != dst:
        return None
    return sorted(room, key=lambda r: r["rank"])


def main():
    dist.init_process_group("gloo")
    mine = {"rank": dist.get_rank(), "max_len": 10 + dist.get_rank()}
    rows = gather_to_main(mine)
    if rows is not None:
        print([row["max_len"] for row in rows])
    done = torch.ones(1)
    dist.all_reduce(done)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
