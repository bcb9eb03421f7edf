import glob
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class ShardStream(IterableDataset):
    """Token rows of those shard files that belong to this rank; the number of rows differs per file."""

    def __init__(self, pattern: str):
        files = sorted(glob.glob(pattern))
        self.files = files[dist.get_rank()::dist.get_world_size()]

    def __iter__(self):
        for path in self.files:
            for row in torch.load(path):
                yield row


def synced_batches(loader, device):
    it = iter(loader)
    finished = torch.zeros(1, dtype=torch.uint8, device=device)
    while True:
        batch = None
        try:
            batch = next(it)
        except StopIteration:
            finished.fill_(1)
        dist.all_reduce(finished, op=dist.ReduceOp.MAX)
        if finished.item() == 1:
            break
        yield batch.to(device)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    embed = torch.nn.Sequential(torch.nn.Embedding(32000, 128), torch.nn.Linear(128, 32000)).to(device)
    model = DistributedDataParallel(embed, device_ids=[local])
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(ShardStream("/data/shards/*.pt"), batch_size=8, drop_last=True)
    steps = 0
    for epoch in range(3):
        for tokens in synced_batches(loader, device):
            logits = model(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            steps += 1
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "final.pt")
        print("steps", steps)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
