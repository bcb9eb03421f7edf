import os
from datetime import timedelta

from lightning.fabric import Fabric
from lightning.fabric.strategies import DDPStrategy


class LastCheckpoint:
    def __init__(self, fabric, folder):
        self.fabric, self.folder = fabric, folder
        self.path = None

    def on_train_end(self, state):
        self.path = self.fabric.broadcast(os.path.join(self.folder, f"last-{state['step']}.ckpt"))
        self.fabric.save(self.path, state)


class Session:
    def __init__(self, fabric, model, optimizer, loader, hooks):
        self.fabric = fabric
        self.model, self.optimizer = fabric.setup(model, optimizer)
        self.loader = fabric.setup_dataloaders(loader)
        self.hooks = hooks
        self.step = 0

    def state(self):
        return {"model": self.model, "optimizer": self.optimizer, "step": self.step}

    def epochs(self, count):
        for _ in range(count):
            for batch in self.loader:
                loss = self.model(batch["x"], batch["y"])
                self.fabric.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.step += 1

    def fit(self, count):
        self.epochs(count)
        for hook in self.hooks:
            hook.on_train_end(self.state())


def main(model, optimizer, loader, folder="last"):
    fabric = Fabric(devices=8, strategy=DDPStrategy(timeout=timedelta(minutes=20)))
    fabric.launch()
    Session(fabric, model, optimizer, loader, [LastCheckpoint(fabric, folder)]).fit(3)
