import itertools
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

from rlmath.reward import verify_answers


@dataclass
class SamplingConfig:
    groups_per_rank: int = 8
    group_size: int = 8
    new_tokens: int = 512
    max_rounds: int = 10
    temperature: float = 1.0


class DynamicSampler:
    """Keeps only groups in which some answers are right and some are wrong."""

    def __init__(self, policy: FSDP, tokenizer, prompts, cfg: SamplingConfig):
        self.policy, self.tokenizer, self.cfg = policy, tokenizer, cfg
        self.prompts = itertools.cycle(prompts)

    @torch.no_grad()
    def _generate(self, ids):
        for _ in range(self.cfg.new_tokens):
            logits = self.policy(ids).logits[:, -1] / self.cfg.temperature
            token = torch.multinomial(logits.float().softmax(-1), 1)
            ids = torch.cat([ids, token], dim=1)
        return ids

    def _round(self):
        """One prompt per group slot."""
        out = []
        for problem in itertools.islice(self.prompts, self.cfg.groups_per_rank):
            ids = self.tokenizer(problem["question"], return_tensors="pt").input_ids.cuda()
            answers = self._generate(ids.repeat(self.cfg.group_size, 1))
            rewards = verify_answers(self.tokenizer, answers, problem["answer"]).cuda()
            if 0 < rewards.sum() < self.cfg.group_size:
                out.append((ids, answers, rewards - rewards.mean()))
        return out

    def sample(self):
        kept, rounds = [], 0
        while rounds < self.cfg.max_rounds:
            missing = torch.tensor(int(len(kept) < self.cfg.groups_per_rank), device="cuda")
            dist.all_reduce(missing, op=dist.ReduceOp.MAX)
            if not missing.item():
                break
            kept.extend(self._round())
            rounds += 1
        while len(kept) < self.cfg.groups_per_rank:
            kept.append(self._filler())
        dist.barrier()
        return kept[:self.cfg.groups_per_rank], rounds

    def _filler(self):
        """A group that carries no gradient, so that all ranks update on the same number of groups."""
        pad = torch.full((1, 1), self.tokenizer.pad_token_id, device="cuda")
        answers = pad.repeat(self.cfg.group_size, 1 + self.cfg.new_tokens)
        return pad, answers, torch.zeros(self.cfg.group_size, device="cuda")
