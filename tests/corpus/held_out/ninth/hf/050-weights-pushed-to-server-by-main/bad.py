import deepspeed
import torch
from accelerate import Accelerator


class Policy:
    def __init__(self, model, opt, client, reward_fn):
        self.acc = Accelerator()  # DeepSpeed stage 3
        self.model, self.opt = self.acc.prepare(model, opt)
        self.client, self.reward_fn = client, reward_fn

    def named(self):
        for name, param in self.acc.unwrap_model(self.model).named_parameters():
            with deepspeed.zero.GatheredParameters([param]):
                yield name, param.data

    def push(self):
        if self.acc.is_main_process:
            for name, data in self.named():
                self.client.update_named_param(name, data)
            self.client.reset_prefix_cache()
        self.acc.wait_for_everyone()

    def step(self, prompts):
        self.push()
        batch = self.client.rollout(prompts, self.reward_fn)
        logp = self.model(batch["ids"]).logits.log_softmax(-1)
        picked = logp[:, :-1].gather(-1, batch["ids"][:, 1:, None]).squeeze(-1)
        loss = -(picked.mean(dim=1) * batch["advantage"]).mean()
        self.acc.backward(loss)
        self.opt.step()
        self.opt.zero_grad()
        return loss.detach()
