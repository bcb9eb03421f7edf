import random

import torch
import torch.distributed as dist


class Sampler:
    def __init__(self, trials):
        self.left, self.history = trials, []

    def ask(self):
        if self.left == 0:
            return None
        self.left -= 1
        return {"lr": 10 ** random.uniform(-4, -1)}

    def tell(self, trial, score):
        self.history.append((score, trial))


def objective(trial):
    loss = torch.tensor([trial["lr"] * (1 + dist.get_rank())])
    dist.all_reduce(loss)
    return loss.item()


def main():
    dist.init_process_group("gloo")
    lead = dist.get_rank() == 0
    sampler = Sampler(trials=5) if lead else None
    done = 0
    while True:
        box = [sampler.ask() if lead else None]
        dist.broadcast_object_list(box, src=0)
        trial = box[0]
        if trial is None:
            break
        score = objective(trial)
        done += 1
        if lead:
            sampler.tell(trial, score)
    assert done == 5
    if lead:
        print("best", min(sampler.history, key=lambda h: h[0]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
