import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

EOS, VOCAB = 2, 128


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 64)
        self.mix = nn.Linear(64, 64)
        self.head = nn.Linear(64, VOCAB)

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids).cumsum(1)).tanh())


@torch.no_grad()
def rollout(model, ids, limit=40):
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(limit):
        probs = model(ids)[:, -1].softmax(-1)
        token = torch.multinomial(probs, 1)
        ids = torch.cat([ids, token], dim=1)
        ended |= token[:, 0] == EOS
        if ended.all():
            break
    return ids


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = FSDP(Toy().cuda(), device_id=local)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(10):
        ids = rollout(model, torch.randint(3, VOCAB, (2, 8), device="cuda"))
        logits = model(ids[:, :-1])
        opt.zero_grad()
        nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
