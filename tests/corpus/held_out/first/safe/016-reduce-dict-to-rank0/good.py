import torch
import torch.distributed as dist


def world_size():
    if not dist.is_available():
        return 1
    if not dist.is_initialized():
        return 1
    return dist.get_world_size()


@torch.no_grad()
def reduce_dict(losses, average=True):
    n = world_size()
    if n < 2:
        return losses
    names = sorted(losses)
    values = torch.stack([losses[k] for k in names])
    dist.reduce(values, dst=0)
    if dist.get_rank() == 0 and average:
        values /= n
    return dict(zip(names, values))


def main():
    dist.init_process_group("gloo")
    losses = {"cls": torch.tensor(1.0), "box": torch.tensor(3.0)}
    reduced = reduce_dict(losses)
    if dist.get_rank() == 0:
        assert reduced["box"].item() == 3.0
        print({k: round(v.item(), 3) for k, v in reduced.items()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
