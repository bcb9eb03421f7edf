import glob
import sys

import torch
import torch.distributed as dist

NO_MORE = -1


def dispatch(n_jobs):
    """Rank 0: hands out job numbers on request, until all workers were sent home."""
    at_work = dist.get_world_size() - 1
    upcoming = 0
    while at_work:
        ask = torch.zeros(1, dtype=torch.long)
        worker = dist.recv(ask)
        if upcoming < n_jobs:
            answer, upcoming = upcoming, upcoming + 1
        else:
            answer, at_work = NO_MORE, at_work - 1
        dist.send(torch.tensor([answer]), worker)


def work(handle):
    done = 0
    while True:
        dist.send(torch.tensor([dist.get_rank()]), 0)
        job = torch.zeros(1, dtype=torch.long)
        dist.recv(job, 0)
        if job.item() == NO_MORE:
            return done
        handle(int(job))
        done += 1


def main(pattern):
    dist.init_process_group("gloo")
    files = [sorted(glob.glob(pattern)) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(files, src=0)
    files = files[0]
    stats = torch.zeros(3, dtype=torch.float64)

    def handle(i):
        try:
            x = torch.load(files[i]).double()
        except (OSError, RuntimeError) as exc:
            print("skipping", files[i], exc, file=sys.stderr)
            return
        stats.add_(torch.tensor([x.numel(), x.sum().item(), x.pow(2).sum().item()], dtype=torch.float64))

    if dist.get_world_size() == 1:
        for i in range(len(files)):
            handle(i)
    elif dist.get_rank() == 0:
        dispatch(len(files))
    else:
        work(handle)
    dist.all_reduce(stats)
    if dist.get_rank() == 0:
        n, s, q = stats.tolist()
        mean = s / max(n, 1)
        print("mean", mean, "std", max(q / max(n, 1) - mean ** 2, 0.0) ** 0.5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
