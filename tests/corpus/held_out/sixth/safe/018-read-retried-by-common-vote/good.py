import logging
import time

import torch
import torch.distributed as dist

log = logging.getLogger(__name__)


class SharedReadError(RuntimeError):
    pass


def everyone(ok: bool, group) -> bool:
    t = torch.tensor([int(ok)])
    dist.all_reduce(t, op=dist.ReduceOp.MIN, group=group)
    return bool(t.item())


def read_everywhere(read, group, tries=5, pause=2.0):
    """Runs `read` on all ranks until it has worked on all of them in one round."""
    for attempt in range(1, tries + 1):
        value, problem = None, None
        try:
            value = read()
        except (OSError, EOFError) as exc:
            problem = exc
            log.warning("rank %d, try %d: %s", dist.get_rank(), attempt, exc)
        if everyone(problem is None, group):
            return value
        if attempt < tries:
            time.sleep(pause * 2 ** (attempt - 1))
    raise SharedReadError(f"no common success in {tries} tries")


def main(cfg):
    dist.init_process_group("cpu:gloo,cuda:nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    group = dist.new_group(backend="gloo")
    model = torch.nn.parallel.DistributedDataParallel(cfg.make_model().cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for number in range(cfg.shards // world):
        path = f"{cfg.root}/shard{number * world + rank:05d}.pt"
        rows = read_everywhere(lambda: torch.load(path), group)
        for lo in range(0, cfg.rows_per_shard, cfg.batch):
            x = rows["x"][lo:lo + cfg.batch].cuda()
            y = rows["y"][lo:lo + cfg.batch].cuda()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()
