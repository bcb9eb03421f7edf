from dataclasses import dataclass
from typing import Dict, List, Optional

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard


@dataclass
class ModalityPlan:
    name: str
    ranks: List[int]
    tp_size: int

    @property
    def grid(self) -> torch.Tensor:
        return torch.tensor(self.ranks).view(-1, self.tp_size)


@dataclass
class ModalityRuntime:
    name: str
    mesh: DeviceMesh
    module: Optional[torch.nn.Module] = None


class ParallelizationPlan:
    """Places the encoders and the language model on disjoint sets of ranks."""

    def __init__(self, plans: List[ModalityPlan]):
        used = [r for p in plans for r in p.ranks]
        if len(set(used)) != len(used):
            raise ValueError("modalities must not share ranks")
        self.plans = plans

    def materialize(self, builders: Dict[str, callable]) -> Dict[str, ModalityRuntime]:
        rank = dist.get_rank()
        runtimes: Dict[str, ModalityRuntime] = {}
        for plan in self.plans:
            if rank not in plan.ranks:
                continue
            mesh = DeviceMesh("cuda", plan.grid, mesh_dim_names=("dp", "tp"))
            module = builders[plan.name]().cuda()
            fully_shard(module, mesh=mesh["dp"])
            runtimes[plan.name] = ModalityRuntime(plan.name, mesh, module)
        return runtimes


def build_vision():
    return torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(1024, 16, batch_first=True), 12)


def build_language():
    return torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(2048, 16, batch_first=True), 24)


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    plan = ParallelizationPlan(
        [ModalityPlan("vision", [0, 1], tp_size=1), ModalityPlan("language", [2, 3, 4, 5, 6, 7], tp_size=2)]
    )
    runtimes = plan.materialize({"vision": build_vision, "language": build_language})
    for runtime in runtimes.values():
        numel = sum(p.numel() for p in runtime.module.parameters())
        print(f"rank {dist.get_rank()}: {runtime.name} {numel / 1e6:.1f}M parameters")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
