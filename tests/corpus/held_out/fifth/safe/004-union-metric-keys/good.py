"""Per-parameter optimizer statistics under a sharded optimizer: no rank holds all the parameters."""
import math

import torch
import torch.distributed as dist


class ShardedAdamStats:
    def __init__(self, optimizer: torch.optim.Optimizer, names: dict, device: torch.device):
        self.optimizer = optimizer
        self.names = names  # param -> fqn, only the local shard
        self.device = device

    def local(self) -> dict:
        out = {}
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                name = self.names[p]
                out[f"l2_norm/grad/{name}"] = p.grad.float().norm() ** 2
                if "exp_avg" in self.optimizer.state[p]:
                    out[f"l2_norm/moment/{name}"] = self.optimizer.state[p]["exp_avg"].float().norm() ** 2
                out[f"mean/grad/{name}"] = p.grad.float().mean()
        return out

    def reduced(self) -> dict:
        mine = self.local()
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, list(mine.keys()))
        wanted = sorted({key for keys in everyone for key in keys})
        result = {}
        for key in wanted:
            value = mine.get(key)
            if value is None:
                value = torch.zeros((), device=self.device)
            dist.all_reduce(value)
            if key.startswith("l2_norm"):
                result[key] = math.sqrt(value.item())
            else:
                result[key] = value.item() / dist.get_world_size()
        return result


def train():
    dist.init_process_group("nccl")
    dev = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(dev)
    layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(12)).to(dev)
    owned = [(n, p) for i, (n, p) in enumerate(layers.named_parameters())
             if i % dist.get_world_size() == dist.get_rank()]
    opt = torch.optim.Adam([p for _, p in owned], lr=1e-4)
    stats = ShardedAdamStats(opt, {p: n for n, p in owned}, dev)
    for step in range(100):
        x = torch.randn(8, 256, device=dev)
        for layer in layers:
            x = torch.relu(layer(x))
        x.mean().backward()
        for p in layers.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(dist.get_world_size())
        opt.step()
        for i, p in enumerate(layers.parameters()):
            dist.broadcast(p.data, src=i % dist.get_world_size())
        if step % 20 == 0:
            table = stats.reduced()
            if dist.get_rank() == 0:
                print(step, {k: round(v, 5) for k, v in list(table.items())[:4]})
        layers.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
