"""Anneal in stages of falling temperature."""
from datetime import timedelta

import spmdguard as sg
import torch
import torch.distributed as dist

STAGES = (4.0, 2.0, 1.0, 0.5)


def store(state, temperature):
    torch.save(state, f"state-{temperature}-{dist.get_rank()}.pt")


def anneal(state):
    for temperature in STAGES:
        left = 10
        while left:
            left -= 1
            pull = state.mean().reshape(1)
            dist.all_reduce(pull)
            state = state + temperature * 0.01 * (pull - state)
            sg.try_or_defer(store, state, temperature)
            if sg.sync_should_stop(sg.has_deferred_error()):
                break
        dist.barrier()
    return state


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    anneal(torch.randn(32))
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()
