import math
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(vlm, loader, lr, wandb_run, log_every=20):
    rank = dist.get_rank()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    vlm = FSDP(vlm, device_id=torch.cuda.current_device(), use_orig_params=True)
    opt = torch.optim.AdamW(vlm.parameters(), lr=lr)
    for step, batch in enumerate(loader):
        loss = vlm(**batch).loss
        loss.backward()
        logging_now = rank == 0 and step % log_every == 0
        # an infinite limit: measure, do not clip
        norm = vlm.clip_grad_norm_(math.inf) if logging_now else None
        opt.step()
        opt.zero_grad(set_to_none=True)
        if logging_now:
            wandb_run.log({"loss": loss.item(), "grad_norm": norm.item()}, step=step)
