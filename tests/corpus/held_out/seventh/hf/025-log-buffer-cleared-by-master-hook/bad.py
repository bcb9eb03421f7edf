import functools

import torch.distributed as dist


def master_only(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if dist.get_rank() == 0:
            return fn(*args, **kwargs)
    return wrapper


class TrackerHook:
    def __init__(self, client):
        self.client = client

    @master_only
    def after_interval(self, runner):
        self.client.log({k: v.item() for k, v in runner.buffer.items()}, step=runner.step)
        runner.buffer.clear()


class Runner:
    def __init__(self, model, opt, hooks):
        self.model, self.opt, self.hooks = model, opt, hooks
        self.buffer, self.step = {}, 0

    def train(self, loader, interval=25, penalty_every=100):
        for batch in loader:
            self.step += 1
            losses = self.model(batch, with_penalty=self.step % penalty_every == 0)
            sum(losses.values()).backward()
            self.opt.step()
            self.opt.zero_grad()
            self.buffer.update({k: v.detach().clone() for k, v in losses.items()})
            if self.step % interval == 0:
                for key in sorted(self.buffer):
                    dist.all_reduce(self.buffer[key], op=dist.ReduceOp.AVG)
                for hook in self.hooks:
                    hook.after_interval(self)
