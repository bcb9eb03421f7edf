from dataclasses import dataclass

import torch
from accelerate import Accelerator


@dataclass
class Control:
    should_save: bool = False


class Loop:
    def __init__(self, model, opt, train_loader, eval_loader, callbacks):
        self.acc = Accelerator()
        self.model, self.opt, self.train_loader, self.eval_loader = self.acc.prepare(
            model, opt, train_loader, eval_loader
        )
        self.callbacks, self.control = callbacks, Control()

    def evaluate(self, step):
        self.model.eval()
        parts = []
        for batch in self.eval_loader:
            with torch.no_grad():
                loss = self.model(**batch).loss
            parts.append(self.acc.gather(loss.reshape(1)))
        self.model.train()
        mean = torch.cat(parts).mean().item()
        if self.acc.is_main_process:
            for cb in self.callbacks:
                cb.on_evaluate(self.control, step, mean)

    def run(self, out, eval_steps):
        for step, batch in enumerate(self.train_loader, start=1):
            self.acc.backward(self.model(**batch).loss)
            self.opt.step()
            self.opt.zero_grad()
            if step % eval_steps == 0:
                self.evaluate(step)
            if self.control.should_save:
                self.acc.save_state(f"{out}/step{step}")
                self.control.should_save = False
