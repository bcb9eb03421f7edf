from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from tqdm.auto import tqdm


@dataclass
class Args:
    epochs: int = 3
    lr: float = 2e-5
    batch_size: int = 16
    eval_every: int = 200
    out: str = "reranker"


def evaluate(model, loader, accelerator):
    model.eval()
    hits, total = 0, 0
    with torch.no_grad():
        for batch in loader:
            scores = model(batch["features"]).squeeze(-1)
            scores, labels = accelerator.gather_for_metrics((scores, batch["label"]))
            hits += ((scores > 0) == labels.bool()).sum().item()
            total += labels.numel()
    model.train()
    return hits / max(total, 1)


def train(args: Args, model, train_set, dev_set):
    accelerator = Accelerator()
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    dev_loader = DataLoader(dev_set, batch_size=args.batch_size)
    model, optim, train_loader, dev_loader = accelerator.prepare(model, optim, train_loader, dev_loader)

    pbar = tqdm(total=args.epochs * len(train_loader), disable=not accelerator.is_main_process)
    completed = 0
    best = 0.0
    for epoch in range(args.epochs):
        for batch in train_loader:
            logits = model(batch["features"]).squeeze(-1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch["label"].float())
            accelerator.backward(loss)
            optim.step()
            optim.zero_grad()
            pbar.update(1)
            completed += 1
            if completed % args.eval_every == 0:
                acc = evaluate(model, dev_loader, accelerator)
                pbar.set_postfix(epoch=epoch, acc=f"{acc:.3f}")
                if acc > best:
                    best = acc
                    accelerator.wait_for_everyone()
                    accelerator.save_state(args.out)
    pbar.close()
    accelerator.end_training()
