import time

import torch
import torch.distributed as dist


def share(value, device):
    t = torch.tensor([float(value)], device=device)
    dist.broadcast(t, 0)
    return t.item()


class RunLimit:
    def __init__(self, hours, tracker=None, every=10):
        self.t0 = time.time()
        self.seconds = hours * 3600
        self.tracker = tracker
        self.every = every

    def _opinion(self):
        if time.time() - self.t0 > self.seconds:
            return True, "time limit"
        if self.tracker is not None:
            try:
                if "cancel" in self.tracker.current_tags():
                    return True, "cancelled by tag"
            except ConnectionError:
                pass
        return False, ""

    def stop(self, step, device):
        if step % self.every:
            return False
        verdict, why = False, ""
        if dist.get_rank() == 0:
            verdict, why = self._opinion()
            if verdict:
                print(f"step {step}: stopping, {why}")
        return bool(share(verdict, device))


def train(model, loader, opt, cfg, saver, tracker):
    limit = RunLimit(cfg.hours, tracker if dist.get_rank() == 0 else None)
    device = torch.device("cuda", torch.cuda.current_device())
    step, over = 0, False
    while not over:
        for batch in loader:
            step += 1
            model(batch.to(device)).mean().backward()
            opt.step()
            opt.zero_grad()
            over = step >= cfg.max_steps or limit.stop(step, device)
            if over or step % cfg.save_every == 0:
                saver.save(step, model, opt)
            if over:
                break
