import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from g2p.data import LexiconDataset, pad_lexicon
from g2p.model import GraphemeToPhoneme


class StoppingEpochs:
    def __init__(self, limit, patience):
        self.limit, self.patience = limit, patience
        self.best, self.bad, self.current = float("inf"), 0, 0

    def __iter__(self):
        while self.current < self.limit and self.bad < self.patience:
            self.current += 1
            yield self.current

    def update(self, value):
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)


class Brain:
    def __init__(self, model, optimizer, epochs: StoppingEpochs):
        self.model, self.optimizer, self.epochs = model, optimizer, epochs

    def run_stage(self, loader, train):
        self.model.train(train)
        total = torch.zeros(2, device="cuda")
        for graphemes, phonemes in loader:
            with torch.set_grad_enabled(train):
                loss = self.model(graphemes.cuda(), phonemes.cuda())
            if train:
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            total += torch.stack([loss.detach() * len(graphemes), total.new_tensor(len(graphemes))])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    def on_stage_end(self, epoch, train_loss, valid_loss):
        with open("train_log.txt", "a") as log:
            log.write(f"{epoch} {train_loss:.4f} {valid_loss:.4f}\n")
        if self.epochs.bad == 0:
            torch.save(self.model.module.state_dict(), "best.pt")

    def fit(self, train_loader, valid_loader):
        for epoch in self.epochs:
            train_loader.sampler.set_epoch(epoch)
            train_loss = self.run_stage(train_loader, True)
            valid_loss = self.run_stage(valid_loader, False)
            self.epochs.update(valid_loss)
            if dist.get_rank() == 0:
                self.on_stage_end(epoch, train_loss, valid_loss)
            dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = DDP(GraphemeToPhoneme().cuda())
    brain = Brain(net, torch.optim.Adam(net.parameters(), lr=2e-4), StoppingEpochs(limit=100, patience=5))
    loaders = []
    for split in ("train", "valid"):
        data = LexiconDataset(split)
        loaders.append(DataLoader(data, 64, sampler=DistributedSampler(data), collate_fn=pad_lexicon))
    brain.fit(*loaders)
    dist.destroy_process_group()
