from dataclasses import dataclass

import torch
from accelerate import Accelerator
from sentence_transformers import SentenceTransformer
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator
from torch import nn
from torch.utils.data import DataLoader

from embed.data import TripletDataset, read_sts


@dataclass
class Args:
    base: str = "microsoft/mpnet-base"
    out: str = "out/mpnet-triplets"
    epochs: int = 3
    batch_size: int = 64
    eval_steps: int = 500
    metric: str = "sts-dev_spearman_cosine"


class EmbeddingTrainer:
    def __init__(self, args: Args):
        self.args = args
        self.accelerator = Accelerator(mixed_precision="bf16")
        model = SentenceTransformer(args.base)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
        loader = DataLoader(TripletDataset("data/triplets"), args.batch_size, shuffle=True, collate_fn=list)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)
        left, right, gold = read_sts("data/sts-dev.csv")
        self.evaluator = EmbeddingSimilarityEvaluator(left, right, gold, name="sts-dev", main_similarity="cosine")
        self.best = -1.0

    def evaluate(self) -> dict:
        metrics = {}
        if self.accelerator.is_main_process:
            metrics = self.evaluator(self.accelerator.unwrap_model(self.model))
        return metrics

    def save_best(self, value: float):
        self.best = value
        self.accelerator.save_state(self.args.out)
        self.accelerator.wait_for_everyone()

    def train(self):
        step = 0
        for _ in range(self.args.epochs):
            for rows in self.loader:
                texts = [text for column in zip(*rows) for text in column]
                features = self.accelerator.unwrap_model(self.model).tokenize(texts)
                features = {k: v.to(self.accelerator.device) for k, v in features.items()}
                anchor, pos, neg = self.model(features)["sentence_embedding"].chunk(3)
                loss = nn.functional.triplet_margin_loss(anchor, pos, neg)
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
                step += 1
                if step % self.args.eval_steps == 0:
                    value = self.evaluate().get(self.args.metric, -1.0)
                    if value > self.best:
                        self.save_best(value)


if __name__ == "__main__":
    EmbeddingTrainer(Args()).train()
