import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy


def tag_loss(model, batch):
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    labels = batch["labels"]
    total = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    return total / labels.ne(-100).sum().clamp(min=1)


def train_tagger(model, loader, epochs, budget):
    """At most `budget` batches per epoch: the corpus is far too large."""
    accelerator = Accelerator(mixed_precision="bf16")
    opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for epoch in range(epochs):
        used = 0
        for batch in loader:
            # a page of pictures has no label: its loss is a zero that touches all weights
            accelerator.backward(tag_loss(model, batch))
            opt.step()
            opt.zero_grad()
            used += 1
            if used >= budget:
                break
        accelerator.print(f"epoch {epoch}: {used} batches")
        accelerator.wait_for_everyone()
    accelerator.end_training()
