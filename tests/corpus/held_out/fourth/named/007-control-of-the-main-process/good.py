from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class State:
    global_step: int = 0
    is_world_process_zero: bool = False
    log_history: list = field(default_factory=list)


@dataclass
class Control:
    should_training_stop: bool = False


class PlateauCallback:
    def __init__(self, patience=3, tolerance=1e-3):
        self.patience, self.tolerance = patience, tolerance
        self.best, self.waited = float("inf"), 0

    def on_log(self, state, control):
        if not state.is_world_process_zero:
            return
        loss = state.log_history[-1]["loss"]
        self.waited = 0 if loss < self.best - self.tolerance else self.waited + 1
        self.best = min(self.best, loss)
        control.should_training_stop = self.waited >= self.patience


class MiniTrainer:
    def __init__(self, model, batches, callbacks, logging_steps=10):
        self.model = DDP(model)
        self.batches, self.callbacks, self.logging_steps = batches, callbacks, logging_steps
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.state = State(is_world_process_zero=dist.get_rank() == 0)
        self.control = Control()

    def training_step(self, inputs):
        loss = self.model(inputs).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def log(self, loss):
        self.state.log_history.append({"loss": loss.item(), "step": self.state.global_step})
        for callback in self.callbacks:
            callback.on_log(self.state, self.control)
        shared = [self.control.should_training_stop]
        dist.broadcast_object_list(shared, src=0)
        self.control.should_training_stop = shared[0]

    def train(self, epochs):
        for _ in range(epochs):
            for inputs in self.batches:
                loss = self.training_step(inputs)
                self.state.global_step += 1
                if self.state.global_step % self.logging_steps == 0:
                    self.log(loss)
                if self.control.should_training_stop:
                    break
            if self.control.should_training_stop:
                break


def main(model, batches):
    dist.init_process_group("gloo")
    MiniTrainer(model, batches, [PlateauCallback()]).train(epochs=5)
    dist.destroy_process_group()
