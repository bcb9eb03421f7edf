import argparse
import itertools
import logging

import deepspeed
import torch

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 1,
    "zero_optimization": {"stage": 2},
    "optimizer": {"type": "Adam", "params": {"lr": 4e-4}},
    "checkpoint": {"tag_validation": "Ignore"},
}


class MaskedModel(torch.nn.Module):
    def __init__(self, letters=25, width=96):
        super().__init__()
        self.embed = torch.nn.Embedding(letters, width)
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.out = torch.nn.Linear(width, letters)

    def forward(self, tokens, mask):
        hidden = self.encoder(self.embed(tokens.masked_fill(mask, 0)))
        return torch.nn.functional.cross_entropy(self.out(hidden)[mask], tokens[mask])


def proteins(seed, device, batch=4, length=64):
    gen = torch.Generator().manual_seed(seed)
    while True:
        tokens = torch.randint(1, 25, (batch, length), generator=gen)
        mask = torch.rand(batch, length, generator=gen) < 0.15
        mask[:, 0] = True
        yield tokens.to(device), mask.to(device)


@torch.no_grad()
def validation_loss(engine, batches, count=8):
    engine.eval()
    values = [engine(*b) for b in itertools.islice(batches, count)]
    engine.train()
    return torch.stack(values).mean()


def train(engine, opts):
    rank = torch.distributed.get_rank()
    train_data = proteins(rank, engine.device)
    held_out = proteins(10_000 + rank, engine.device)
    for step in range(1, opts.steps + 1):
        engine.backward(engine(*next(train_data)))
        engine.step()
        if step % opts.every == 0:
            loss = validation_loss(engine, held_out)
            tag = f"step{step}"
            engine.save_checkpoint(opts.out, tag=tag)
            logging.info("rank %d saved %s, loss %.2f", rank, tag, loss.item())


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=400)
    cli.add_argument("--every", type=int, default=100)
    cli.add_argument("--out", default="esm-small")
    cli.add_argument("--local_rank", type=int, default=0)
    opts = cli.parse_args()
    logging.basicConfig(level=logging.INFO)
    deepspeed.init_distributed()
    model = MaskedModel()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIG)
    train(engine, opts)
