from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs


def cycle(loader):
    while True:
        yield from loader


class ClipTrainer(torch.nn.Module):
    def __init__(self, clip, loader, num_train_steps, save_model_every=1000, results="results", lr=1.25e-6):
        super().__init__()
        self.accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
        self.clip = clip
        self.optim = torch.optim.Adam(clip.parameters(), lr=lr)
        self.clip, self.optim, self.loader = self.accelerator.prepare(self.clip, self.optim, loader)
        self.batches = cycle(self.loader)
        self.num_train_steps = num_train_steps
        self.save_model_every = save_model_every
        self.results = Path(results)
        self.results.mkdir(parents=True, exist_ok=True)
        self.register_buffer("steps", torch.tensor(0))

    @property
    def is_main(self):
        return self.accelerator.is_main_process

    def train_step(self):
        steps = int(self.steps.item())
        self.clip.train()
        video, text = next(self.batches)
        loss = self.clip(text, video, return_loss=True)
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.clip.parameters(), 0.5)
        self.optim.step()
        self.optim.zero_grad()
        if not steps % self.save_model_every:
            state = self.accelerator.get_state_dict(self.clip, unwrap=False)
            if self.is_main:
                torch.save(state, self.results / f"clip.{steps}.pt")
            self.accelerator.print(f"{steps}: saved")
        self.steps += 1
        return {"loss": loss.item()}

    def train(self, log=print):
        while self.steps < self.num_train_steps:
            log(self.train_step())
