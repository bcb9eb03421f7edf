"""Small translation trainer in the manner of fairseq."""
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger(__name__)


class Trainer:
    def __init__(self, model, lr, device):
        self.device = device
        self.model = DDP(model.to(device), device_ids=[device.index])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr, betas=(0.9, 0.98))
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0)
        self.num_updates = 0
        self.ooms = 0

    def _forward_backward(self, sample):
        tokens = sample.to(self.device, non_blocking=True)
        logits = self.model(tokens[:, :-1])
        loss = self.criterion(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        return loss.detach()

    def train_step(self, sample):
        self.model.train()
        self.optimizer.zero_grad()
        try:
            loss = self._forward_backward(sample)
        except RuntimeError as err:
            if "out of memory" not in str(err):
                raise
            self.ooms += 1
            logger.warning("ran out of memory on a batch of shape %s", tuple(sample.shape))
            raise
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.num_updates += 1
        return loss


class LM(nn.Module):
    def __init__(self, vocab=32000, dim=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def batches(rank, count=500):
    rng = torch.Generator().manual_seed(rank)
    for _ in range(count):
        length = int(torch.randint(16, 1024, (1,), generator=rng))
        yield torch.randint(1, 32000, (max(1, 8192 // length), length), generator=rng)


def main():
    logging.basicConfig(level=logging.INFO)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    trainer = Trainer(LM(), lr=5e-4, device=device)
    for i, sample in enumerate(batches(dist.get_rank())):
        loss = trainer.train_step(sample)
        if loss is not None and i % 20 == 0 and dist.get_rank() == 0:
            logger.info("step %d loss %.3f", i, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
