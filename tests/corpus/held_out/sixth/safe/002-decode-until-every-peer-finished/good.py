from dataclasses import dataclass

import torch
from torch import distributed as dist


@dataclass
class DecodeConfig:
    eos: int = 2
    pad: int = 0
    max_len: int = 256


def any_peer_busy(busy: bool, device) -> bool:
    flag = torch.tensor(1.0 if busy else 0.0, device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.SUM)
    return flag.item() > 0


@torch.no_grad()
def greedy_decode(fsdp_lm, prompt_ids, cfg: DecodeConfig):
    """prompt_ids has another length on each rank; fsdp_lm gathers weights per forward."""
    ids = prompt_ids
    alive = torch.ones(ids.size(0), dtype=torch.bool, device=ids.device)
    done = ids.size(1) >= cfg.max_len
    while True:
        if not any_peer_busy(not done, ids.device):
            break
        logits = fsdp_lm(ids[:, -cfg.max_len:])
        if done:
            continue
        token = logits[:, -1].argmax(-1)
        token = torch.where(alive, token, torch.full_like(token, cfg.pad))
        ids = torch.cat([ids, token[:, None]], dim=1)
        alive &= token != cfg.eos
        done = not bool(alive.any()) or ids.size(1) >= cfg.max_len
    return ids


def sample_previews(fsdp_lm, batches, tokenizer, writer, step):
    cfg = DecodeConfig(eos=tokenizer.eos_token_id, pad=tokenizer.pad_token_id)
    fsdp_lm.eval()
    for i in range(4):
        out = greedy_decode(fsdp_lm, next(batches)["input_ids"].cuda(), cfg)
        if writer is not None:
            writer.add_text(f"preview/{i}", tokenizer.decode(out[0]), step)
    fsdp_lm.train()
