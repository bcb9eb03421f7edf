from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlhf.rollout import RolloutStore, compute_logprobs


@dataclass
class PPOArgs:
    model_name: str = "gpt2-xl"
    ppo_epochs: int = 4
    mini_batch: int = 8
    target_kl: float = 0.1
    cliprange: float = 0.2
    lr: float = 1.4e-5
    iterations: int = 500


class PPO:
    def __init__(self, args: PPOArgs):
        self.args = args
        self.accelerator = Accelerator(log_with="tensorboard", project_dir="runs/ppo")
        self.tokenizer = AutoTokenizer.from_pretrained(args.model_name)
        model = AutoModelForCausalLM.from_pretrained(args.model_name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.accelerator.init_trackers("ppo")

    def loss(self, mb):
        logp = compute_logprobs(self.model, mb["ids"], mb["mask"])
        log_ratio = (logp - mb["old_logp"]) * mb["answer_mask"]
        ratio = log_ratio.exp()
        unclipped = ratio * mb["advantages"]
        clipped = ratio.clamp(1 - self.args.cliprange, 1 + self.args.cliprange) * mb["advantages"]
        n = mb["answer_mask"].sum().clamp(min=1)
        approx_kl = ((ratio - 1) - log_ratio).sum().detach() / n
        return -(torch.minimum(unclipped, clipped) * mb["answer_mask"]).sum() / n, approx_kl

    def update(self, store: RolloutStore):
        stop, last_kl = False, 0.0
        for _ in range(self.args.ppo_epochs):
            if stop:
                break
            for mb in DataLoader(store, batch_size=self.args.mini_batch, shuffle=True, drop_last=True):
                mb = {k: v.to(self.accelerator.device) for k, v in mb.items()}
                loss, approx_kl = self.loss(mb)
                last_kl = self.accelerator.reduce(approx_kl, reduction="mean").item()
                if last_kl > 1.5 * self.args.target_kl:
                    stop = True
                    self.optimizer.zero_grad()
                    break
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
        return last_kl

    def run(self, collect):
        for it in range(self.args.iterations):
            kl = self.update(collect(self.model, self.tokenizer))
            self.accelerator.log({"ppo/kl": kl}, step=it)
        self.accelerator.end_training()
