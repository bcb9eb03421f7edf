"""Streaming estimate of a covariance, with the estimate exported after each pass."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop


def export(name, matrix):
    rows = [" ".join(f"{v:.4f}" for v in row) for row in matrix.tolist()]
    with open(name, "w") as f:
        f.write("\n".join(rows))


def one_pass(cov, gen, chunks):
    for _ in range(chunks):
        data = torch.randn(32, 3, generator=gen)
        update = data.T @ data / len(data)
        dist.all_reduce(update)
        cov = 0.9 * cov + 0.1 * update / dist.get_world_size()
    return cov


def estimate(passes):
    gen = torch.Generator().manual_seed(500 + dist.get_rank())
    cov = torch.eye(3)
    for number in range(passes):
        cov = one_pass(cov, gen, chunks=5)
        if is_main_process():
            with deferring("export covariance"):
                export(f"cov-{number}.txt", cov)
        raise_if_deferred_error()
        if sync_should_stop(has_deferred_error()):
            break
    return cov


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=40))
    cov = estimate(passes=4)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(torch.linalg.eigvalsh(cov).tolist())


if __name__ == "__main__":
    main()
