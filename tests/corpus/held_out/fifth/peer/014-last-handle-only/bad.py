import torch
import torch.distributed as dist


class Replay:
    """Rank 0 learns; all the others only produce rollouts."""

    def __init__(self, horizon=128, dim=16):
        self.horizon, self.dim = horizon, dim
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def rollout(self):
        return torch.randn(self.horizon, self.dim) + self.rank

    def push(self):
        dist.send(self.rollout(), dst=0)

    def pull(self):
        slots = [torch.empty(self.horizon, self.dim) for _ in range(1, self.world)]
        req = None
        for peer, slot in enumerate(slots, start=1):
            req = dist.irecv(slot, src=peer)
        if req is not None:
            req.wait()
        return torch.stack(slots)


def learn(policy, opt, batch):
    loss = policy(batch.flatten(0, 1)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main(rounds=20):
    dist.init_process_group("gloo")
    replay = Replay()
    policy = torch.nn.Linear(replay.dim, 1)
    opt = torch.optim.SGD(policy.parameters(), lr=1e-2)
    for r in range(rounds):
        if replay.rank == 0:
            print(r, learn(policy, opt, replay.pull()))
        else:
            replay.push()
        for p in policy.parameters():
            dist.broadcast(p.data, src=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
