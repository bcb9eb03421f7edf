import glob
import itertools
import os
import tarfile

import torch
import torch.distributed as dist
import webdataset as wds
from torch.nn.parallel import DistributedDataParallel as DDP


def count_samples(urls) -> int:
    total = 0
    for url in urls:
        with tarfile.open(url) as tar:
            total += sum(1 for n in tar.getnames() if n.endswith(".pth"))
    return total


class Trainer:
    def __init__(self, urls, batch: int):
        self.rank, self.device = dist.get_rank(), torch.device("cuda", torch.cuda.current_device())
        if len(urls) < dist.get_world_size():
            raise ValueError(f"only {len(urls)} shards")
        mine = urls[self.rank::dist.get_world_size()]
        rounds = torch.tensor([count_samples(mine) // batch], device=self.device)
        dist.all_reduce(rounds, op=dist.ReduceOp.MIN)
        self.rounds = int(rounds.item())
        pipe = wds.WebDataset(mine, shardshuffle=False, nodesplitter=lambda src: src).decode().to_tuple("pth")
        self.loader = torch.utils.data.DataLoader(pipe.batched(batch, partial=False), batch_size=None)
        self.model = DDP(torch.nn.Linear(128, 128).to(self.device), device_ids=[self.device.index])
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.log = open("/tmp/train.log", "a") if self.rank == 0 else None

    def epoch(self, number: int) -> None:
        running = torch.zeros(2, device=self.device)
        for (x,) in itertools.islice(self.loader, self.rounds):
            loss = self.model(x.to(self.device)).square().mean()
            loss.backward()
            self.opt.step()
            self.opt.zero_grad()
            running += torch.stack([loss.detach(), torch.ones_like(loss.detach())])
        dist.all_reduce(running)
        if self.log is not None:
            self.log.write(f"{number} {(running[0] / running[1].clamp(min=1)).item():.5f}\n")

    def close(self) -> None:
        if self.log is not None:
            self.log.close()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    trainer = None
    try:
        trainer = Trainer(sorted(glob.glob("/data/train-*.tar")), batch=32)
        for number in range(3):
            trainer.epoch(number)
        dist.barrier()
    finally:
        if trainer is not None:
            trainer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
