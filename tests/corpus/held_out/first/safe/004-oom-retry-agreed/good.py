import torch
import torch.distributed as dist


def forward_fits(batch, room):
    if batch > room:
        raise RuntimeError("out of memory")
    return torch.zeros(batch, 3).sum()


def find_batch(start, room):
    batch = start
    while batch >= 1:
        failed = torch.zeros(1)
        try:
            forward_fits(batch, room)
        except RuntimeError:
            failed += 1
        dist.all_reduce(failed)
        if failed.item() == 0:
            return batch
        batch //= 2
    raise RuntimeError("no batch size fits on all ranks")


def main():
    dist.init_process_group("gloo")
    room = 40 if dist.get_rank() == 0 else 20
    batch = find_batch(64, room)
    assert batch == 16, batch
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
