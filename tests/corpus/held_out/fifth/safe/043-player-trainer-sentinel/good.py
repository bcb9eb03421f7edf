import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STOP = -1


def collect(policy, n=512):
    obs = torch.randn(n, 16)
    with torch.no_grad():
        act = torch.distributions.Categorical(logits=policy(obs)).sample()
    reward = (act == (obs[:, 0] > 0).long()).float()
    return {"obs": obs, "act": act, "reward": reward}


def player(pair, max_updates: int, target: float):
    policy = torch.nn.Linear(16, 2)
    flat = parameters_to_vector(policy.parameters()).detach().clone()
    for update in range(max_updates):
        data = collect(policy)
        if data["reward"].mean() >= target:
            break
        dist.broadcast_object_list([data], src=0)
        info = [None]
        dist.broadcast_object_list(info, src=1, group=pair)
        dist.broadcast(flat, src=1, group=pair)
        vector_to_parameters(flat.clone(), policy.parameters())
        print(update, info[0], flush=True)
    dist.broadcast_object_list([STOP], src=0)


def trainer(pair, optim_group):
    policy = DistributedDataParallel(torch.nn.Linear(16, 2), process_group=optim_group)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    workers, me = dist.get_world_size(optim_group), dist.get_rank(optim_group)
    while True:
        box = [None]
        dist.broadcast_object_list(box, src=0)
        if box[0] == STOP:
            return
        data = {k: v.chunk(workers)[me] for k, v in box[0].items()}
        for _ in range(4):
            logp = torch.distributions.Categorical(logits=policy(data["obs"])).log_prob(data["act"])
            loss = -(logp * (data["reward"] - 0.5)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 1:
            dist.broadcast_object_list([{"loss": loss.item()}], src=1, group=pair)
            dist.broadcast(parameters_to_vector(policy.parameters()).detach(), src=1, group=pair)


def main():
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    assert 2 <= world and 512 % (world - 1) == 0
    pair = dist.new_group([0, 1])
    optim_group = dist.new_group(list(range(1, world)))
    if dist.get_rank() == 0:
        player(pair, int(os.environ.get("UPDATES", "200")), target=0.95)
    else:
        trainer(pair, optim_group)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
