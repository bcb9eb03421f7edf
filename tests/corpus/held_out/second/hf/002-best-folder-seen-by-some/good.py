import os

import torch
from accelerate import Accelerator


class BestKeeper:
    def __init__(self, accelerator: Accelerator, root: str):
        self.accelerator, self.root = accelerator, root
        self.best_loss, self.best_folder = float("inf"), None

    def offer(self, model, loss: float, step: int) -> None:
        if loss >= self.best_loss:
            return
        self.best_loss = loss
        folder = os.path.join(self.root, f"step-{step}")
        if self.accelerator.is_main_process:
            os.makedirs(folder, exist_ok=True)
            torch.save(self.accelerator.unwrap_model(model).state_dict(), f"{folder}/weights.pt")
        self.best_folder = folder

    def reload(self, model) -> None:
        if self.best_folder is not None:
            self.accelerator.wait_for_everyone()
            weights = torch.load(f"{self.best_folder}/weights.pt", map_location="cpu")
            self.accelerator.unwrap_model(model).load_state_dict(weights)


def run(model, optimizer, loader, evaluate, root="runs"):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    keeper = BestKeeper(accelerator, root)
    for step, batch in enumerate(loader):
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % 200 == 199:
            loss = accelerator.reduce(evaluate(model), reduction="mean").item()
            keeper.offer(model, loss, step)
    keeper.reload(model)
    return accelerator.unwrap_model(model)
