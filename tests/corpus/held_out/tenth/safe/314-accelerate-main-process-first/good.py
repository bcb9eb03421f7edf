import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def build_cache(path):
    if not os.path.exists(path):
        torch.save((torch.randn(50, 4), torch.randint(0, 2, (50,))), path)
    return torch.load(path)


def main():
    accelerator = Accelerator()
    with accelerator.main_process_first():
        x, y = build_cache("toy.pt")
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.AdamW(model.parameters())
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for epoch in range(2):
        hits = seen = 0
        for xb, yb in loader:
            logits = model(xb)
            accelerator.backward(torch.nn.functional.cross_entropy(logits, yb))
            opt.step()
            opt.zero_grad()
            guess, truth = accelerator.gather_for_metrics((logits.argmax(-1), yb))
            if accelerator.is_main_process:
                hits += (guess == truth).sum().item()
                seen += truth.numel()
        if accelerator.is_main_process:
            print(f"epoch {epoch}: {hits / seen:.3f}")
        accelerator.wait_for_everyone()
    state = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        accelerator.save(state, "model.pt")


if __name__ == "__main__":
    main()
