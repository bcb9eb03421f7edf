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
    def __init__(self, model, token_budget=32_768):
        self.engine, *_ = deepspeed.initialize(model=model, config=DS_CONFIG)
        self.token_budget = token_budget  # measured once with the longest input

    def _run(self, tokens, pieces):
        parts = tokens.tensor_split(pieces)
        for i, part in enumerate(parts):
            self.engine.set_gradient_accumulation_boundary(i == len(parts) - 1)
            loss = self.engine(input_ids=part, labels=part).loss
            self.engine.backward(loss / len(parts))
            self.engine.step()

    def step(self, tokens):
        need = torch.tensor(-(-tokens.numel() // self.token_budget), device=tokens.device)
        dist.all_reduce(need, op=dist.ReduceOp.MAX)  # the longest batch decides for all
        self._run(tokens, min(int(need), ROWS))  # out of memory now ends the job


def train(model, loader):
    trainer = AutoMicrobatch(model)
    for tokens in loader:  # ROWS rows, as long as the longest of them
        trainer.step(tokens.to(trainer.engine.device))
