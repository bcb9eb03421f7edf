import torch
import torch.distributed as dist


class OverlappedReducer:
    def __init__(self, params, bucket=4):
        self.params = [p for p in params if p.requires_grad]
        self.bucket = bucket
        self.world = dist.get_world_size()

    def _buckets(self):
        for i in range(0, len(self.params), self.bucket):
            yield self.params[i:i + self.bucket]

    def start(self):
        flats = []
        for group in self._buckets():
            parts = [p.grad if p.grad is not None else torch.zeros_like(p) for p in group]
            flats.append((group, torch.cat([g.reshape(-1) for g in parts])))
        handles = [dist.all_reduce(flat, async_op=True) for _, flat in flats]
        return list(zip(flats, handles))

    def finish(self, started):
        while started:
            (group, flat), handle = started.pop(0)
            handle.wait()
            flat /= self.world
            for p, part in zip(group, flat.split([p.numel() for p in group])):
                p.grad = part.view_as(p).clone()


def main(steps=20):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(6)])
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    reducer = OverlappedReducer(net.parameters())
    for step in range(steps):
        opt.zero_grad()
        loss = net(torch.randn(8, 16)).square().mean()
        loss.backward()
        started = reducer.start()
        value = loss.item()
        reducer.finish(started)
        opt.step()
        if dist.get_rank() == 0 and step % 5 == 0:
            print(step, value)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
