import torch
from accelerate import Accelerator


class TokenFilter:
    """Keeps the gradient of the least certain tokens only."""

    def __init__(self, accelerator: Accelerator, quantile: float):
        self.accelerator, self.quantile = accelerator, quantile

    def entropies(self, logits):
        logp = logits.log_softmax(-1)
        return -(logp.exp() * logp).sum(-1)

    def __call__(self, logits, mask):
        values = self.entropies(logits.detach()).float()
        chosen = values[mask.bool()]
        everywhere = self.accelerator.gather(chosen)
        bar = torch.quantile(everywhere, self.quantile)
        return (values >= bar) & mask.bool()


def train(model, loader, optimizer, quantile=0.8):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    pick = TokenFilter(accelerator, quantile)
    for batch in loader:
        logits = model(batch["ids"])[:, :-1]
        keep = pick(logits, batch["mask"][:, 1:])
        nll = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch["ids"][:, 1:], reduction="none"
        )
        loss = (nll * keep).sum() / keep.sum().clamp(min=1)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
