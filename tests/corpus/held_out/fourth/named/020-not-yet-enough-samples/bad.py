import torch
import torch.distributed as dist


def average_gradients(parameters):
    size = dist.get_world_size()
    for p in parameters:
        if p.requires_grad:
            dist.all_reduce(p.grad)
            p.grad /= size


class Stepper:
    def __init__(self, model, lr, accumulate, min_valid):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.accumulate, self.min_valid = accumulate, min_valid
        self.calls, self.valid = 0, 0

    def __call__(self, x, y):
        mask = y >= 0
        self.valid += int(mask.sum())
        self.calls += 1
        logits = self.model(x).squeeze(-1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y.clamp(min=0), reduction="none")
        ((loss * mask).sum() / self.accumulate).backward()
        if self.calls % self.accumulate:
            return
        if self.valid < self.min_valid:
            return
        average_gradients(self.model.parameters())
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.valid = 0


def main(batches):
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    step = Stepper(torch.nn.Linear(40, 1), lr=0.2, accumulate=4, min_valid=16)
    for x, y in batches:
        step(x, y)
    dist.destroy_process_group()
