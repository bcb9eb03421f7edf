import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class HalfAfter:
    """Full precision at first, half precision on the wire later."""

    def __init__(self, warmup):
        self.warmup, self.step = warmup, 0

    def __call__(self, _, bucket):
        if bucket.is_last():
            self.step += 1
        world = dist.get_world_size()
        grad = bucket.buffer().div_(world)
        if self.step <= self.warmup:
            return dist.all_reduce(grad, async_op=True).get_future().then(lambda f: f.value()[0])
        small = grad.to(torch.float16)
        fut = dist.all_reduce(small, async_op=True).get_future()

        def widen(f):
            grad.copy_(f.value()[0])
            return grad

        return fut.then(widen)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)))
    model.register_comm_hook(None, HalfAfter(warmup=2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        opt.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        opt.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
