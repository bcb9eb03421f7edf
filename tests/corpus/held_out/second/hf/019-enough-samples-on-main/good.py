import torch
from accelerate import Accelerator


class Report:
    def __init__(self, limit):
        self.limit, self.pairs = limit, []

    def extend(self, guesses, labels):
        self.pairs += list(zip(guesses.tolist(), labels.tolist()))

    @property
    def full(self):
        return len(self.pairs) >= self.limit

    def accuracy(self):
        return sum(g == l for g, l in self.pairs) / max(len(self.pairs), 1)


@torch.inference_mode()
def evaluate(accelerator: Accelerator, model, loader, limit=1000):
    model.eval()
    report = Report(limit)
    for batch in loader:
        guesses = model(batch["pixels"]).argmax(-1)
        guesses, labels = accelerator.gather_for_metrics((guesses, batch["label"]))
        report.extend(guesses, labels)
        if report.full:
            break
    accelerator.wait_for_everyone()
    return report.accuracy() if accelerator.is_main_process else None


def main(model, loader):
    accelerator = Accelerator()
    model, loader = accelerator.prepare(model, loader)
    score = evaluate(accelerator, model, loader)
    accelerator.print("accuracy", score)
