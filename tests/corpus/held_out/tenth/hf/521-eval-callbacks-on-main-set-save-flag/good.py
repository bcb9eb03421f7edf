from dataclasses import dataclass
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list


@dataclass
class Control:
    save: bool = False
    stop: bool = False


class SaveOnBest:
    def __init__(self):
        self.best = float("inf")

    def on_evaluate(self, control, metrics):
        if metrics["loss"] < self.best:
            self.best = metrics["loss"]
            control.save = True


class MiniTrainer:
    def __init__(self, model, opt, train_loader, val_loader, callbacks, out):
        self.accelerator = Accelerator()
        self.model, self.opt, self.train_loader, self.val_loader = self.accelerator.prepare(
            model, opt, train_loader, val_loader
        )
        self.callbacks, self.out, self.control = callbacks, out, Control()

    @torch.no_grad()
    def evaluate(self):
        losses = [self.model(**b).loss for b in self.val_loader]
        mean = self.accelerator.reduce(torch.stack(losses).mean(), reduction="mean").item()
        if self.accelerator.is_main_process:
            for cb in self.callbacks:
                cb.on_evaluate(self.control, {"loss": mean})
        flags = [self.control.save, self.control.stop]
        broadcast_object_list(flags, from_process=0)
        self.control.save, self.control.stop = flags

    def checkpoint(self, step):
        self.accelerator.wait_for_everyone()
        self.accelerator.save_state(f"{self.out}/step{step}")
        self.control.save = False

    def train(self, eval_every=500):
        for step, batch in enumerate(self.train_loader, start=1):
            self.accelerator.backward(self.model(**batch).loss)
            self.opt.step()
            self.opt.zero_grad()
            if step % eval_every == 0:
                self.evaluate()
                if self.control.save:
                    self.checkpoint(step)


def main(model, opt, train_loader, val_loader, out):
    MiniTrainer(model, opt, train_loader, val_loader, [SaveOnBest()], out).train()
