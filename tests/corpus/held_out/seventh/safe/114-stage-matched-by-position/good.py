import torch
import torch.distributed as dist


def run_stage(layer, x, width, batch):
    """Move one batch through the chain of stages; the last one holds the output."""
    stage, last = dist.get_rank(), dist.get_world_size() - 1
    match (stage > 0, stage < last):
        case (False, True):
            dist.send(layer(x), dst=stage + 1)
            out = torch.empty(batch, width)
        case (True, True):
            dist.recv(hidden := torch.empty(batch, width), src=stage - 1)
            dist.send(layer(hidden), dst=stage + 1)
            out = torch.empty(batch, width)
        case (True, False):
            dist.recv(hidden := torch.empty(batch, width), src=stage - 1)
            out = layer(hidden)
        case _:
            out = layer(x)
    dist.broadcast(out, src=last)
    return out


@torch.no_grad()
def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    layer = torch.nn.Linear(6, 6)
    x = torch.randn(4, 6) if dist.get_rank() == 0 else None
    for _ in range(3):
        out = run_stage(layer, x, width=6, batch=4)
        assert out.shape == (4, 6)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
