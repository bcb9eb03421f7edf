"""Fit the feature normaliser over all shards before training starts."""
import logging

import torch
import torch.distributed as dist

log = logging.getLogger("normalise")


def pool_moments(buf):
    dist.all_reduce(buf["sum"])
    dist.all_reduce(buf["sumsq"])
    dist.all_reduce(buf["count"])


def share_vocab(buf):
    dist.broadcast(buf["vocab"], src=0)


PHASES = {
    "chief": (share_vocab, pool_moments),
    "worker": (share_vocab, pool_moments),
}


def local_moments(rows):
    return {
        "sum": rows.sum(0),
        "sumsq": (rows * rows).sum(0),
        "count": torch.tensor([float(len(rows))]),
        "vocab": torch.zeros(512, dtype=torch.long),
    }


def main():
    dist.init_process_group("gloo")
    logging.basicConfig(level=logging.INFO)
    role = "chief" if dist.get_rank() == 0 else "worker"
    buf = local_moments(torch.randn(1024, 32))
    if role == "chief":
        buf["vocab"] = torch.arange(512)
    for phase in PHASES[role]:
        log.info("%s: %s", role, phase.__name__)
        phase(buf)
    mean = buf["sum"] / buf["count"]
    log.info("mean[0]=%.4f", mean[0].item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
