import argparse

import evaluate
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def toy(count, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, 32, 32, generator=gen)
    return TensorDataset(x, torch.randint(0, 10, (count,), generator=gen))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(), torch.nn.Flatten())
        self.head = torch.nn.Linear(8 * 15 * 15, 10)

    def forward(self, x):
        return self.head(self.body(x))


def run_validation(accelerator, model, loader):
    metric = evaluate.load("accuracy")
    model.eval()
    for images, labels in loader:
        with torch.inference_mode():
            preds = model(images).argmax(dim=-1)
        if not accelerator.is_main_process:
            continue
        preds, refs = accelerator.gather_for_metrics((preds, labels))
        metric.add_batch(predictions=preds, references=refs)
    model.train()
    return metric.compute()["accuracy"] if accelerator.is_main_process else None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=32)
    args = ap.parse_args()
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = Net()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train = DataLoader(toy(2048, 1), batch_size=args.batch, shuffle=True)
    val = DataLoader(toy(500, 2), batch_size=args.batch)
    model, opt, train, val = accelerator.prepare(model, opt, train, val)
    for epoch in range(args.epochs):
        for images, labels in train:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
        score = run_validation(accelerator, model, val)
        accelerator.print(f"epoch {epoch}: accuracy {score}")


if __name__ == "__main__":
    main()
