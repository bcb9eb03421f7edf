import deepspeed
import torch
from deepspeed.profiling.flops_profiler import FlopsProfiler


def to_device(batch, device):
    return {k: v.to(device) for k, v in batch.items()}


def print_rank_0(text, rank):
    if rank <= 0:
        print(text)


def train(args, net, ds_config, loader):
    deepspeed.init_distributed()
    args.global_rank = torch.distributed.get_rank()
    engine, optimizer, _, schedule = deepspeed.initialize(
        args=args, model=net, model_parameters=net.parameters(), config=ds_config
    )
    prof = FlopsProfiler(engine.module)
    for epoch in range(args.num_train_epochs):
        engine.train()
        for step, batch in enumerate(loader):
            batch = to_device(batch, engine.device)
            if (step + 1) % args.num_print_steps == 0 and args.global_rank == 0:
                prof.start_profile()
                engine(**batch, use_cache=False)
                prof.stop_profile()
                print_rank_0(f"step {step} flops {prof.get_total_flops()}", args.global_rank)
                prof.end_profile()
            outputs = engine(**batch, use_cache=False)
            engine.backward(outputs.loss)
            engine.step()
        print_rank_0(f"epoch {epoch} finished", args.global_rank)
