"""Find layers whose gradient has died out on every process."""
from datetime import timedelta

import torch
import torch.distributed as dist


def highest(value: torch.Tensor) -> float:
    peak = value.detach().clone().reshape(1)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    return peak.item()


def quiet(param: torch.nn.Parameter, floor: float) -> bool:
    peak = param.grad.abs().max()
    return highest(peak) <= floor


def frozen_names(net: torch.nn.Module, floor: float) -> list[str]:
    return [name for name, param in net.named_parameters() if quiet(param, floor)]


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=45))
    torch.manual_seed(11)
    net = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    torch.manual_seed(100 + dist.get_rank())
    net(torch.randn(6, 5)).pow(2).mean().backward()
    names = frozen_names(net, floor=0.05)
    dist.destroy_process_group()
    print(", ".join(names) or "none")


if __name__ == "__main__":
    main()
