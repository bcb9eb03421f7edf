from datetime import timedelta

import torch
import torch.distributed as dist


class ShardedEmbedding(torch.nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        torch.manual_seed(5)
        full = torch.randn(vocab, width)
        self.part = full.chunk(dist.get_world_size(), dim=1)[dist.get_rank()].contiguous()

    def forward(self, ids):
        pieces = [torch.empty_like(self.part) for _ in range(dist.get_world_size())]
        dist.all_gather(pieces, self.part)
        table = torch.cat(pieces, 1)
        return table[ids].mean(1) @ table.T


def rollout(net, prompts, eos, pad, max_new_tokens):
    ids = prompts
    alive = torch.ones(len(ids), dtype=torch.bool)
    for _ in range(max_new_tokens):
        token = net(ids).argmax(1)
        token = torch.where(alive, token, torch.full_like(token, pad))
        alive = alive & (token != eos)
        ids = torch.cat([ids, token[:, None]], 1)
    return ids


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    net = ShardedEmbedding(vocab=20, width=8)
    prompts = torch.randint(2, 20, (3, 4), generator=torch.Generator().manual_seed(dist.get_rank()))
    assert rollout(net, prompts, eos=1, pad=0, max_new_tokens=6).shape == (3, 10)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
