from itertools import cycle

import torch
from accelerate import Accelerator


def short_somewhere(accelerator, kept, need):
    have = torch.tensor([len(kept)], device=accelerator.device)
    return accelerator.gather(have).min().item() < need


def collect(accelerator, policy, tokenizer, prompts, reward_fn, need):
    kept = []
    while short_somewhere(accelerator, kept, need):
        batch = next(prompts)
        with torch.no_grad():
            ids = accelerator.unwrap_model(policy).generate(**batch, max_new_tokens=64)
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        texts = [t for t in texts if t.strip()]
        scores = torch.tensor([float(reward_fn(t)) for t in texts], device=accelerator.device)
        stats = torch.stack([scores.sum(), scores.new_tensor(float(len(texts)))])
        total = accelerator.gather(stats.unsqueeze(0)).sum(0)
        baseline = total[0] / total[1].clamp(min=1)
        kept.extend(zip(texts, (scores - baseline).tolist()))
    return kept[:need]


def train(policy, tokenizer, loader, reward_fn, update, iterations):
    accelerator = Accelerator()
    policy, loader = accelerator.prepare(policy, loader)
    prompts = cycle(loader)
    for _ in range(iterations):
        update(policy, collect(accelerator, policy, tokenizer, prompts, reward_fn, need=128))
