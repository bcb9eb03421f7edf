import deepspeed
import torch
import torch.distributed as dist

ROWS = 16
DS_CONFIG = {
    "train_micro_batch_size_per_gpu": ROWS,
    "gradient_accumulation_steps": 1,
    "bf16": {"enabled": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}},
    "zero_optimization": {"stage": 3},
}


class AutoMicrobatch:
    def __init__(self, model):
        self.engine, *_ = deepspeed.initialize(model=model, config=DS_CONFIG)
        self.pieces = 1

    def _run(self, tokens):
        parts = tokens.tensor_split(self.pieces)
        for i, part in enumerate(parts):
            self.engine.set_gradient_accumulation_boundary(i == len(parts) - 1)
            loss = self.engine(input_ids=part, labels=part).loss
            self.engine.backward(loss / len(parts))
            self.engine.step()

    def step(self, tokens):
        while True:
            try:
                return self._run(tokens)
            except torch.cuda.OutOfMemoryError:
                if self.pieces == ROWS:
                    raise
                self.pieces *= 2
                torch.cuda.empty_cache()
                print(f"rank {dist.get_rank()}: {self.pieces} micro-batches from here on")


def train(model, loader):
    trainer = AutoMicrobatch(model)
    for tokens in loader:  # ROWS rows, as long as the longest of them
        trainer.step(tokens.to(trainer.engine.device))
