import torch
from accelerate import Accelerator


class PolicyUpdater:
    def __init__(self, policy, opt, target_kl=0.1, inner_epochs=4, clip=0.2):
        self.accelerator = Accelerator()
        self.policy, self.opt = self.accelerator.prepare(policy, opt)
        self.target_kl, self.inner_epochs, self.clip = target_kl, inner_epochs, clip

    def surrogate(self, mb):
        logp = self.policy(mb["ids"], mb["mask"])
        ratio = torch.exp(logp - mb["old_logp"])
        a = mb["adv"] * ratio
        b = mb["adv"] * ratio.clamp(1 - self.clip, 1 + self.clip)
        kl = (0.5 * (logp - mb["old_logp"]) ** 2).mean()
        return -torch.min(a, b).mean(), kl.detach()

    def update(self, minibatches):
        stop = False
        done = 0
        for _ in range(self.inner_epochs):
            if stop:
                break
            for mb in minibatches:
                loss, kl = self.surrogate(mb)
                if kl.item() > 1.5 * self.target_kl:
                    self.opt.zero_grad()
                    stop = True
                    break
                self.accelerator.backward(loss)
                self.opt.step()
                self.opt.zero_grad()
                done += 1
        return done
