import deepspeed
import torch
import torch.distributed as dist
from deepspeed.profiling.flops_profiler import FlopsProfiler


def train(net, config, loader, epochs, profile_every):
    deepspeed.init_distributed()
    engine, _, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
    chief = dist.get_rank() == 0
    profiler = FlopsProfiler(engine.module) if chief else None
    step = 0
    for epoch in range(epochs):
        for batch in loader:
            batch = {k: v.to(engine.device) for k, v in batch.items()}
            watched = chief and step % profile_every == 0
            if watched:
                profiler.start_profile()
            loss = engine(**batch).loss
            if watched:
                profiler.stop_profile()
                print(f"step {step}: {profiler.get_total_flops(as_string=True)}")
                profiler.end_profile()
            engine.backward(loss)
            engine.step()
            step += 1
    total = torch.tensor([step], device=engine.device)
    dist.all_reduce(total)
    return total.item()
