import deepspeed
import torch


class AdaptivePenalty:
    def __init__(self, start=0.1, target=4.0, step=0.02):
        self.value, self.target, self.step = start, target, step

    def observe(self, kl: float) -> None:
        change = self.step if kl > self.target else -self.step
        self.value = max(0.0, self.value + change)


def token_logp(engine, ids):
    logp = engine(ids).logits[:, :-1].log_softmax(-1)
    return logp.gather(-1, ids[:, 1:, None]).squeeze(-1)


class Tuner:
    def __init__(self, policy, reference, penalty=None):
        self.policy, self.reference = policy, reference
        self.penalty = penalty or AdaptivePenalty()

    def step(self, ids, reward):
        mine = token_logp(self.policy, ids)
        loss = -(reward[:, None] * mine).mean()
        with torch.no_grad():
            theirs = token_logp(self.reference, ids)
        kl = (mine - theirs).sum(1).mean()
        loss = loss + self.penalty.value * kl
        self.penalty.observe(kl.item())
        self.policy.backward(loss)
        self.policy.step()


def build(policy, reference, config):
    tuned, *_ = deepspeed.initialize(model=policy, config=config, model_parameters=policy.parameters())
    frozen, *_ = deepspeed.initialize(model=reference, config={**config, "optimizer": None})
    return Tuner(tuned, frozen.eval())
