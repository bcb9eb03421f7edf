import torch
from accelerate import Accelerator
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def export(model, path):
    with FSDP.summon_full_params(model, writeback=False, rank0_only=True, offload_to_cpu=True):
        weights = {name: p.detach().half().clone() for name, p in model.named_parameters()}
        torch.save(weights, path)


def train(model, make_opt, loader, args):
    accelerator = Accelerator()  # an FSDP config file
    model = accelerator.prepare(model)
    opt, loader = accelerator.prepare(make_opt(model), loader)
    for epoch in range(args.epochs):
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
        if accelerator.is_main_process:
            export(model, f"{args.out}/epoch{epoch}.pt")
        accelerator.wait_for_everyone()
