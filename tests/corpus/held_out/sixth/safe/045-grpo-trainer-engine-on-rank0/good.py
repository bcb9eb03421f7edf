import contextlib
import math
from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather, gather_object

from rollout_client import GenerationClient


@dataclass
class GroupConfig:
    group: int = 8
    beta: float = 0.02
    clip: float = 0.2
    max_new: int = 512
    lr: float = 1e-6
    inner: int = 2
    steps: int = 500
    log_every: int = 1
    save_every: int = 100
    server: str = "http://localhost:8000"
    out: str = "grpo"


class GroupTrainer:
    def __init__(self, cfg, policy, reference, tokenizer, loader, rewards):
        self.cfg, self.tok, self.rewards = cfg, tokenizer, rewards
        self.acc = Accelerator(gradient_accumulation_steps=1)
        optim = torch.optim.AdamW(policy.parameters(), lr=cfg.lr)
        self.policy, self.optim, self.loader = self.acc.prepare(policy, optim, loader)
        self.ref = self.acc.prepare_model(reference, evaluation_mode=True)
        self.client = None
        if self.acc.is_main_process:
            self.client = GenerationClient(cfg.server)
            self.client.open_weight_channel()
        self.acc.wait_for_everyone()
        self.synced = -1
        self.metrics = defaultdict(list)

    @contextlib.contextmanager
    def gathered(self, param):
        plugin = self.acc.state.deepspeed_plugin
        if plugin is not None and plugin.zero_stage == 3:
            import deepspeed
            with deepspeed.zero.GatheredParameters([param]):
                yield
        else:
            yield

    def sync_weights(self, step):
        if self.synced == step:
            return
        model = self.acc.unwrap_model(self.policy)
        for name, param in model.named_parameters():
            with self.gathered(param):
                if self.acc.is_main_process:
                    self.client.update_param(name, param.data)
        if self.acc.is_main_process:
            self.client.reset_cache()
        self.acc.wait_for_everyone()
        self.synced = step

    def generate(self, prompts):
        everyone = gather_object(prompts)
        if self.acc.is_main_process:
            answers = self.client.generate(everyone, max_tokens=self.cfg.max_new)
        else:
            answers = [None] * len(everyone)
        answers = broadcast_object_list(answers, from_process=0)
        lo = self.acc.process_index * len(prompts)
        return answers[lo:lo + len(prompts)]

    def rollout(self, batch, step):
        self.sync_weights(step)
        prompts = [p for p in batch["prompt"] for _ in range(self.cfg.group)]
        completions = self.generate(prompts)
        texts = self.tok.batch_decode(completions, skip_special_tokens=True)
        score = torch.zeros(len(prompts), device=self.acc.device)
        for fn in self.rewards:
            score += torch.tensor(fn(prompts, texts), dtype=torch.float32, device=self.acc.device)
        grouped = score.view(-1, self.cfg.group)
        adv = (grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)
        enc = self.tok(prompts, padding=True, padding_side="left", return_tensors="pt").to(self.acc.device)
        comp = torch.nn.utils.rnn.pad_sequence([torch.tensor(c) for c in completions], batch_first=True,
                                               padding_value=self.tok.pad_token_id).to(self.acc.device)
        ids = torch.cat([enc.input_ids, comp], dim=1)
        mask = (comp != self.tok.pad_token_id).float()
        with torch.no_grad():
            old = self.logps(self.policy, ids, comp.size(1))
            ref = self.logps(self.ref, ids, comp.size(1)) if self.cfg.beta else None
        everyone = gather(score)
        self.metrics["reward"].append(everyone.mean().item())
        self.metrics["length"].append(gather(mask.sum(1)).mean().item())
        return dict(ids=ids, n=comp.size(1), mask=mask, old=old, ref=ref, adv=adv.flatten())

    def logps(self, model, ids, n):
        logits = model(ids).logits[:, -n - 1:-1]
        return torch.gather(F.log_softmax(logits.float(), -1), 2, ids[:, -n:, None]).squeeze(-1)

    def loss(self, r):
        new = self.logps(self.policy, r["ids"], r["n"])
        ratio = (new - r["old"]).exp()
        a = r["adv"].unsqueeze(1)
        per = -torch.min(ratio * a, ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip) * a)
        if r["ref"] is not None:
            d = r["ref"] - new
            per = per + self.cfg.beta * (d.exp() - d - 1)
        return (per * r["mask"]).sum() / r["mask"].sum().clamp(min=1)

    def log(self, step):
        if step % self.cfg.log_every:
            return
        if self.acc.is_main_process:
            print(step, {k: sum(v) / len(v) for k, v in self.metrics.items()})
        self.metrics.clear()

    def save(self, step):
        state = self.acc.get_state_dict(self.policy)
        if self.acc.is_main_process:
            self.acc.unwrap_model(self.policy).save_pretrained(f"{self.cfg.out}/{step}", state_dict=state)
            self.tok.save_pretrained(f"{self.cfg.out}/{step}")
        self.acc.wait_for_everyone()

    def train(self):
        step = 0
        while step < self.cfg.steps:
            for batch in self.loader:
                r = self.rollout(batch, step)
                for _ in range(self.cfg.inner):
                    loss = self.loss(r)
                    self.acc.backward(loss)
                    norm = self.acc.clip_grad_norm_(self.policy.parameters(), 1.0)
                    self.optim.step()
                    self.optim.zero_grad()
                bad = gather(torch.tensor([not math.isfinite(float(loss))], device=self.acc.device))
                if bad.any():
                    raise FloatingPointError(f"loss not finite in step {step}, norm {norm}")
                step += 1
                self.log(step)
                if step % self.cfg.save_every == 0 or step == self.cfg.steps:
                    self.save(step)
                if step == self.cfg.steps:
                    break
        self.acc.end_training()
