"""Fit a small linear model and keep a log of the global weight norm."""
import torch
import torch.distributed as dist
from spmdguard import deferring, is_main_process, run, sync_should_stop
from torch.nn.parallel import DistributedDataParallel


def append_line(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8") as f:
        f.write(text + "\n")


def write_report(step: int, value: float) -> None:
    append_line("norm.log", f"{step}\t{value:.5f}")


@run()
def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(40):
        loss = model(torch.randn(16, 8)).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        with deferring("loss report"):
            append_line(f"rank{dist.get_rank()}.log", f"{step} {loss.item():.4f}")
            if is_main_process():
                write_report(step, mean.item())
        if sync_should_stop():
            break


if __name__ == "__main__":
    main()
