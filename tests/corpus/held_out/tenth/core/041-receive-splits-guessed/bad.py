"""Toy mixture of experts, one expert per process."""
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Dispatch(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.expert = nn.Linear(width, width)
        self.experts = experts

    @torch.no_grad()
    def forward(self, tokens):
        choice = self.router(tokens).argmax(-1)
        order = choice.argsort(stable=True)
        counts = torch.bincount(choice, minlength=self.experts)
        send = counts.tolist()
        receive = send
        inbox = tokens.new_empty(sum(receive), tokens.shape[1])
        dist.all_to_all_single(inbox, tokens[order].contiguous(), receive, send)
        outbox = torch.empty_like(tokens)
        dist.all_to_all_single(outbox, self.expert(inbox), send, receive)
        result = torch.empty_like(tokens)
        result[order] = outbox
        return result


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    torch.manual_seed(dist.get_rank())
    layer = Dispatch(16, dist.get_world_size())
    total = torch.zeros(1)
    for _ in range(10):
        total += layer(torch.randn(40, 16)).norm()
    dist.all_reduce(total)
    print(f"rank {dist.get_rank()} total {total.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
