import torch
import torch.distributed as dist
import wandb
from spmdguard import is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer


def train(tracker, steps=200):
    scale = torch.ones(6)
    for step in range(steps):
        pull = scale - torch.linspace(0, 1, 6)
        dist.all_reduce(pull)
        scale -= 0.1 * pull / dist.get_world_size()
        if tracker is not None:
            try_or_defer(tracker.log, {"norm": pull.norm().item()}, step=step)
        if sync_should_stop():
            break
    if tracker is not None:
        tracker.finish()
    return scale


def export(scale, path):
    traced = torch.jit.trace(lambda x: x * scale, torch.ones(6))
    traced.save(path)


def main():
    dist.init_process_group("gloo")
    lead = is_main_process()
    tracker = try_or_defer(wandb.init, project="scales", mode="offline") if lead else None
    scale = train(tracker)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    if lead:
        export(scale, "scales.pt")


if __name__ == "__main__":
    main()
