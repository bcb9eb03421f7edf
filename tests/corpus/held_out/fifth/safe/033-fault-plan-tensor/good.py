import math
import os
import random
import threading
import time

import torch
import torch.distributed as dist


class SlowDown:
    seconds = 0.0

    def maybe(self):
        if self.seconds:
            time.sleep(self.seconds)


def setup_faults(n_targets: int, seconds: float, mtti: float, seed: int, slow: SlowDown):
    """Chaos testing: choose stragglers on rank 0 and arm a timer on each of them."""
    rank, world = dist.get_rank(), dist.get_world_size()
    plan = torch.full((world + 1,), float("nan"), dtype=torch.float64, device="cuda")
    if rank == 0:
        rng = random.Random(seed)
        for victim in rng.sample(range(world), min(n_targets, world)):
            plan[victim] = seconds
        plan[world] = -math.log(1.0 - rng.random()) * mtti
    dist.broadcast(plan, src=0)
    planned, delay = plan[rank].item(), plan[world].item()
    if math.isnan(planned):
        return None
    print(f"rank {rank}: slower by {planned}s per step in {delay:.1f}s", flush=True)
    timer = threading.Timer(delay, lambda: setattr(slow, "seconds", planned))
    timer.daemon = True
    timer.start()
    return timer


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    slow = SlowDown()
    timer = setup_faults(1, 0.05, mtti=60.0, seed=int(os.environ.get("FAULT_SEED", "0")), slow=slow)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).cuda())
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(2000):
        slow.maybe()
        model(torch.randn(32, 512, device="cuda")).square().mean().backward()
        opt.step()
        opt.zero_grad()
    if timer is not None:
        timer.cancel()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
