from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.logging import get_logger
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm

logger = get_logger(__name__)


@dataclass
class Best:
    value: float = float("inf")

    def improved_by(self, value: float) -> bool:
        better = value < self.value
        if better:
            self.value = value
        return better


def sequences(count, seed):
    gen = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randint(0, 200, (count, 33), generator=gen))


class DraftHead(torch.nn.Module):
    def __init__(self, vocab=200, width=128):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, width)
        self.rnn = torch.nn.GRU(width, width, batch_first=True)
        self.out = torch.nn.Linear(width, vocab)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens[:, :-1]))
        return torch.nn.functional.cross_entropy(self.out(hidden).transpose(1, 2), tokens[:, 1:])


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    losses = [model(tokens).float() for (tokens,) in loader]
    model.train()
    mean = torch.stack(losses).mean()
    return accelerator.reduce(mean, reduction="mean").item()


def main(root="checkpoints", epochs=10):
    accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(state_dict_type="SHARDED_STATE_DICT"))
    model = DraftHead()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    train = DataLoader(sequences(8000, 0), batch_size=32, shuffle=True)
    held = DataLoader(sequences(640, 1), batch_size=32)
    model, optimizer, train, held = accelerator.prepare(model, optimizer, train, held)
    best = Best()
    for epoch in range(epochs):
        for (tokens,) in tqdm(train, disable=not accelerator.is_local_main_process):
            loss = model(tokens)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        value = evaluate(accelerator, model, held)
        if best.improved_by(value):
            accelerator.save_state(Path(root) / f"epoch{epoch}")
        logger.info("epoch %d: %.4f (best %.4f)", epoch, value, best.value)


if __name__ == "__main__":
    main()
