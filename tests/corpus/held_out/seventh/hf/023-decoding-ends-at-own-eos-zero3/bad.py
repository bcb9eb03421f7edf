import deepspeed
import torch
import torch.distributed as dist

ZERO3 = {
    "train_micro_batch_size_per_gpu": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3},
}


@torch.no_grad()
def decode(engine, ids, eos, limit):
    done = torch.zeros(ids.size(0), dtype=torch.bool, device=ids.device)
    for _ in range(limit):
        token = engine(ids).logits[:, -1].argmax(-1).masked_fill(done, eos)
        ids = torch.cat([ids, token[:, None]], dim=1)
        done |= token == eos
        if done.all():
            break
    return ids


def distil(student, teacher, opt, loader, kl, eos):
    engine, _, _, _ = deepspeed.initialize(model=student, optimizer=opt, config=ZERO3)
    coach, _, _, _ = deepspeed.initialize(model=teacher, config=ZERO3)
    for batch in loader:
        ids = decode(engine, batch["ids"].to(engine.device), eos, limit=512)
        with torch.no_grad():
            target = coach(ids).logits
        engine.backward(kl(engine(ids).logits, target))
        engine.step()
    if dist.get_rank() == 0:
        print("done")
