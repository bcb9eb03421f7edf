import os

from accelerate import Accelerator
from sentence_transformers import SentenceTransformer
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator


class BestKeeper:
    def __init__(self, accelerator, key, folder):
        self.accelerator, self.key, self.folder = accelerator, key, folder
        self.best = float("-inf")

    def update(self, metrics):
        score = metrics[self.key]
        if score > self.best:
            self.best = score
            self.accelerator.save_state(self.folder)


def evaluate(accelerator, evaluator, model):
    metrics = {}
    model.eval()
    if accelerator.is_main_process:
        metrics = evaluator(accelerator.unwrap_model(model))
    model.train()
    return metrics


def train(base, loss_fn, opt_fn, loader, dev, out="sts", eval_every=500):
    accelerator = Accelerator()
    model = SentenceTransformer(base, device=str(accelerator.device))
    model, opt, loader = accelerator.prepare(model, opt_fn(model), loader)
    evaluator = EmbeddingSimilarityEvaluator(
        dev["left"], dev["right"], dev["score"], main_similarity="cosine", name="dev"
    )
    keeper = BestKeeper(accelerator, "dev_spearman_cosine", os.path.join(out, "best"))
    for step, (features, labels) in enumerate(loader, start=1):
        accelerator.backward(loss_fn(model, features, labels))
        opt.step()
        opt.zero_grad()
        if step % eval_every == 0:
            keeper.update(evaluate(accelerator, evaluator, model))
