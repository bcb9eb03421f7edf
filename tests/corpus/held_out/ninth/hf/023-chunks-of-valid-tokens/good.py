import torch
import torch.distributed as dist
import torch.nn.functional as F
from deepspeed import zero


@torch.no_grad()
def chunked_nll(hidden, labels, head, chunk=256):
    keep = labels != -100
    hidden, labels = hidden[keep], labels[keep]
    total = torch.zeros((), device=hidden.device)
    rounds = torch.tensor(-(-labels.numel() // chunk), device=hidden.device)
    dist.all_reduce(rounds, op=dist.ReduceOp.MAX)
    for start in range(0, rounds.item() * chunk, chunk):
        h, y = hidden[start : start + chunk], labels[start : start + chunk]
        with zero.GatheredParameters([head.weight]):
            if y.numel():
                logits = h @ head.weight.t()
                total += F.cross_entropy(logits.float(), y, reduction="sum")
    return total, labels.numel()


def evaluate(engine, loader):
    engine.eval()
    nll, count = 0.0, 0
    for batch in loader:
        with torch.no_grad():
            out = engine.module.model(input_ids=batch["input_ids"]).last_hidden_state
        part, n = chunked_nll(out[:, :-1], batch["labels"][:, 1:], engine.module.lm_head)
        nll, count = nll + part.item(), count + n
    engine.train()
    return nll / max(count, 1)
