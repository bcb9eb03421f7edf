import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local


@rank_local
def save_embedding(step, table):
    torch.save(table, f"/tmp/emb-{dist.get_rank()}-{step}.pt")


def power_iteration(matrix, rounds):
    vector = torch.ones(matrix.shape[1])
    for step in range(rounds):
        partial = matrix @ vector
        dist.all_reduce(partial)
        vector = partial / partial.norm()
        save_embedding(step, vector)
        if has_deferred_error():
            break
    return vector


def main():
    dist.init_process_group("gloo")
    gen = torch.Generator().manual_seed(dist.get_rank())
    rows = torch.rand(12, 12, generator=gen)
    vector = power_iteration(rows, rounds=30)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(vector[:3])


if __name__ == "__main__":
    main()
