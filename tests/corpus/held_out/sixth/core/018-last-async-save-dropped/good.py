import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


@dataclass
class Job:
    folder: str = "outputs/checkpoint"
    interval: int = 250
    steps: int = 1000
    lr: float = 3e-4


class Checkpointer:
    def __init__(self, job, model, optimizer):
        self.job, self.model, self.optimizer = job, model, optimizer
        self.pg = dist.new_group(backend="gloo")
        self.save_future = None

    def _wait(self):
        if self.save_future is not None:
            self.save_future.result()
            self.save_future = None

    def save(self, step, last=False):
        if step % self.job.interval != 0 and not last:
            return
        self._wait()
        model_sd, optim_sd = get_state_dict(self.model, self.optimizer)
        state = {"model": model_sd, "optim": optim_sd, "step": step}
        path = os.path.join(self.job.folder, f"step-{step}")
        self.save_future = dcp.async_save(state, checkpoint_id=path, process_group=self.pg)

    def close(self):
        self._wait()
        self.model = self.optimizer = None


def build(dim=1024, depth=8):
    net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(dim, dim), torch.nn.GELU()) for _ in range(depth)])
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    net = net.cuda()
    for blk in net:
        fully_shard(blk, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def main(job=Job()):
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=job.lr)
    checkpointer = Checkpointer(job, model, optimizer)
    for step in range(1, job.steps + 1):
        x = torch.randn(8, 1024, device="cuda")
        loss = (model(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        checkpointer.save(step, last=step == job.steps)
    checkpointer.close()
    dist.destroy_process_group()
    print("training completed")


if __name__ == "__main__":
    main()
