import os

import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file


class BestModel:
    def __init__(self, accelerator, root):
        self.accelerator, self.root = accelerator, root
        self.loss, self.folder = float("inf"), None

    def update(self, model, loss, step):
        if loss >= self.loss:
            return
        self.loss = loss
        folder = os.path.join(self.root, f"best-{step}")
        if self.accelerator.is_main_process:
            os.makedirs(folder, exist_ok=True)
            weights = self.accelerator.unwrap_model(model).state_dict()
            save_file(weights, os.path.join(folder, "model.safetensors"))
        if os.path.exists(folder):
            self.folder = folder

    def restore(self, model):
        if self.folder is not None:
            self.accelerator.wait_for_everyone()
            weights = load_file(os.path.join(self.folder, "model.safetensors"))
            self.accelerator.unwrap_model(model).load_state_dict(weights)


def train(model, opt, loader, root, eval_every=100):
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    best = BestModel(accelerator, root)
    for step, batch in enumerate(loader, start=1):
        loss = model(**batch).loss
        accelerator.backward(loss)
        opt.step()
        opt.zero_grad()
        if step % eval_every == 0:
            mean = accelerator.reduce(loss.detach(), reduction="mean").item()
            best.update(model, mean, step)
    best.restore(model)
    final = torch.stack([p.detach().float().norm() for p in model.parameters()]).norm()
    print(accelerator.gather(final.reshape(1)).tolist())
