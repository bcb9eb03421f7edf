import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def pack_by_tokens(samples, budget):
    packs, current, used = [], [], 0
    for ids in sorted(samples, key=len, reverse=True):
        if current and used + len(ids) > budget:
            packs.append(current)
            current, used = [], 0
        current.append(ids)
        used += len(ids)
    if current:
        packs.append(current)
    return packs


class ActorWorker:
    def __init__(self, device, vocab=200, budget=48):
        net = torch.nn.Sequential(torch.nn.Embedding(vocab, 32), torch.nn.Linear(32, vocab))
        self.policy = FSDP(net.to(device))
        self.opt = torch.optim.AdamW(self.policy.parameters(), lr=1e-5)
        self.budget, self.device = budget, device

    def update_policy(self, minibatch):
        packs = pack_by_tokens(minibatch, self.budget)
        self.opt.zero_grad()
        for pack in packs:
            ids = torch.cat(pack).to(self.device)
            logits = self.policy(ids)
            loss = torch.nn.functional.cross_entropy(logits[:-1], ids[1:])
            (loss / len(packs)).backward()
        self.opt.step()


def rollout(rank, n):
    gen = torch.Generator().manual_seed(rank)
    return [torch.randint(0, 200, (int(torch.randint(4, 40, (1,), generator=gen)),), generator=gen) for _ in range(n)]


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", timeout=timedelta(minutes=5))
    worker = ActorWorker(torch.device("cuda", local))
    for _ in range(10):
        worker.update_policy(rollout(dist.get_rank(), 8))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
