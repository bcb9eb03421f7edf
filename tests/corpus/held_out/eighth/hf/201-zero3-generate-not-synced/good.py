import deepspeed
import torch

DS_CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "bf16": {"enabled": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-6}},
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
}


class Rollout:
    def __init__(self, actor, tokenizer, max_new_tokens=256):
        self.actor, self.tokenizer = actor, tokenizer
        self.max_new_tokens = max_new_tokens

    @torch.no_grad()
    def sample(self, prompts, mask):
        self.actor.eval()
        seq = self.actor.module.generate(
            input_ids=prompts,
            attention_mask=mask,
            do_sample=True,
            max_new_tokens=self.max_new_tokens,
            eos_token_id=self.tokenizer.eos_token_id,
            pad_token_id=self.tokenizer.pad_token_id,
            synced_gpus=True,  # go on with dummy forwards until all ranks have ended
        )
        self.actor.train()
        return seq


def train(model, tokenizer, loader, reward_fn):
    actor, *_ = deepspeed.initialize(model=model, config=DS_CONFIG)
    rollout = Rollout(actor, tokenizer)
    for prompts, mask in loader:
        seq = rollout.sample(prompts.to(actor.device), mask.to(actor.device))
        logits = actor(input_ids=seq).logits[:, :-1]
        logp = logits.log_softmax(-1).gather(-1, seq[:, 1:, None]).squeeze(-1)
        loss = -(reward_fn(seq)[:, None] * logp).mean()
        actor.backward(loss)
        actor.step()
