from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Recognizer(nn.Module):
    def __init__(self, feats=40, units=64, tokens=30):
        super().__init__()
        self.encoder = nn.GRU(feats, units, batch_first=True)
        self.ctc = nn.Linear(units, tokens)

    def forward(self, speech):
        return self.ctc(self.encoder(speech)[0]).log_softmax(-1)


class SpeechTrainer:
    def __init__(self, accum_grad):
        self.accum_grad = accum_grad
        self.model = DDP(Recognizer())
        self.optim = torch.optim.Adam(self.model.parameters(), lr=5e-4)

    def train_epoch(self, batches):
        for batch_idx, (speech, text) in enumerate(batches):
            context = nullcontext
            if self.accum_grad > 1 and batch_idx % self.accum_grad != 0:
                context = self.model.no_sync
            with context():
                logp = self.model(speech).transpose(0, 1)
                frames = torch.full((speech.shape[0],), speech.shape[1])
                labels = torch.full((text.shape[0],), text.shape[1])
                loss = nn.functional.ctc_loss(logp, text, frames, labels) / self.accum_grad
                loss.backward()
            if (batch_idx + 1) % self.accum_grad == 0:
                self.optim.step()
                self.optim.zero_grad()


def fake_batches(rank, n):
    gen = torch.Generator().manual_seed(rank)
    for _ in range(n):
        yield torch.randn(4, 25, 40, generator=gen), torch.randint(1, 30, (4, 6), generator=gen)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=1))
    trainer = SpeechTrainer(accum_grad=4)
    for _ in range(2):
        trainer.train_epoch(fake_batches(dist.get_rank(), 16))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
