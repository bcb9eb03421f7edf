import ray
import torch
import torch.distributed as dist
from deepspeed.zero import GatheredParameters

from rollout.utils import init_side_group


class PolicyActor:
    """One per training GPU. Rank 0 is also member 0 of the group with the engines."""

    def __init__(self, engine, cfg, engines):
        self.engine = engine
        self.cfg = cfg
        self.engines = engines
        self.side = None

    def connect(self, host, port):
        if dist.get_rank() == 0:
            world = 1 + len(self.engines) * self.cfg.engine_tp
            refs = [e.join_group.remote(host, port, 1 + i * self.cfg.engine_tp, world)
                    for i, e in enumerate(self.engines)]
            self.side = init_side_group(backend="nccl", init_method=f"tcp://{host}:{port}",
                                        world_size=world, rank=0, name="weights")
            ray.get(refs)
        dist.barrier()

    def push(self):
        params = list(self.engine.module.named_parameters())
        lead = dist.get_rank() == 0
        if lead and self.cfg.prefix_cache:
            ray.get([e.drop_cache.remote() for e in self.engines])
        dist.barrier()
        for i, (name, p) in enumerate(params):
            shape = p.ds_shape if self.cfg.zero3 else p.shape
            refs = []
            if lead:
                refs = [e.receive.remote(name, p.dtype, shape, last=i + 1 == len(params))
                        for e in self.engines]
            with GatheredParameters([p], enabled=self.cfg.zero3):
                if lead:
                    dist.broadcast(p.data, 0, group=self.side)
                    ray.get(refs)
        torch.cuda.empty_cache()
        dist.barrier()

    def fit_step(self, batch):
        loss = self.engine(**batch).loss
        self.engine.backward(loss)
        self.engine.step()
        return loss.detach()
