import copy

import torch
import torch.distributed as dist


def perturb(model, sigma, seed):
    gen = torch.Generator().manual_seed(seed)
    child = copy.deepcopy(model)
    with torch.no_grad():
        for p in child.parameters():
            p.add_(torch.randn(p.shape, generator=gen), alpha=sigma)
    return child


@torch.no_grad()
def fitness(model, x, y):
    return -(model(x).squeeze(1) - y).abs().mean().item()


def adopt_best(child, score):
    scores = torch.full((dist.get_world_size(),), float("-inf"))
    scores[dist.get_rank()] = score
    winner = int(scores.argmax())
    for p in child.parameters():
        dist.broadcast(p.data, src=winner)
    return child, winner


def main(generations=50):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    x, y = torch.randn(256, 8), torch.randn(256)
    for g in range(generations):
        child = perturb(model, 0.05, seed=g * 1000 + dist.get_rank())
        model, winner = adopt_best(child, fitness(child, x, y))
        if dist.get_rank() == 0 and g % 10 == 0:
            print("generation", g, "winner", winner)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
