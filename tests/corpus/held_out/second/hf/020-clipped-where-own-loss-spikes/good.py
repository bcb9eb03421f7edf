import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin


class Spike:
    def __init__(self, factor=1.5, decay=0.98):
        self.factor, self.decay, self.mean = factor, decay, None

    def __call__(self, value: float) -> bool:
        if self.mean is None:
            self.mean = value
        high = value > self.factor * self.mean
        self.mean = self.decay * self.mean + (1 - self.decay) * value
        return high


def train(net, loader, steps, max_norm=1.0):
    accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin())
    net = accelerator.prepare(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4)
    optimizer, loader = accelerator.prepare(optimizer, loader)
    spike = Spike()
    for step, (ids, labels) in zip(range(steps), loader):
        loss = net(input_ids=ids, labels=labels).loss
        accelerator.backward(loss)
        if spike(accelerator.reduce(loss.detach(), reduction="mean").item()):
            accelerator.clip_grad_norm_(net.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
    state = accelerator.get_state_dict(net)
    if accelerator.is_main_process:
        torch.save(state, "weights.pt")
