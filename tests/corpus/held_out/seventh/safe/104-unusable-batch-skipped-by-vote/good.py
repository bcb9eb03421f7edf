import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def usable_everywhere(ok):
    vote = torch.tensor([1 if ok else 0])
    dist.all_reduce(vote, op=dist.ReduceOp.MIN)
    return bool(vote.item())


def train(model, opt, batches):
    skipped = 0
    for x, mask in batches:
        if not usable_everywhere(mask.any().item()):
            skipped += 1
            continue
        opt.zero_grad()
        per_row = model(x).pow(2).mean(dim=1)
        loss = per_row[mask].mean()
        loss.backward()
        opt.step()
    return skipped


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gen = torch.Generator().manual_seed(rank)
    batches = []
    for _ in range(8):
        x = torch.randn(4, 6, generator=gen)
        batches.append((x, torch.rand(4, generator=gen) > 0.8))
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(6, 3))
    skipped = train(model, torch.optim.SGD(model.parameters(), lr=0.1), batches)
    if rank == 0:
        print(f"{skipped} micro-batches without an anchor somewhere")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
