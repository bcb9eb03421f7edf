import os
from accelerate import Accelerator
from accelerate.utils import set_seed


class Loop:
    def __init__(self, cfg, model, optimizer, scheduler, loader):
        set_seed(cfg["seed"])
        self.cfg = cfg
        self.accelerator = Accelerator(log_with="tensorboard", project_dir=cfg["out"])
        self.model, self.optimizer, self.scheduler, self.loader = self.accelerator.prepare(
            model, optimizer, scheduler, loader
        )
        self.best = float("inf")

    def snapshot(self, name):
        self.accelerator.wait_for_everyone()
        if self.cfg["save_state"]:
            self.accelerator.save_state(os.path.join(self.cfg["out"], name))

    def train_epoch(self):
        self.model.train()
        for batch in self.loader:
            loss = self.model(**batch).loss
            self.accelerator.backward(loss)
            self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()

    def run(self):
        for epoch in range(self.cfg["epochs"]):
            self.train_epoch()
            self.snapshot(f"epoch_{epoch}")
        self.accelerator.end_training()
