import torch
import torch.distributed as dist


def all_agree(flag):
    t = torch.tensor([int(flag)])
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return bool(t.item())


def main():
    dist.init_process_group("gloo")
    for pending in (2, 1, 0):
        if all_agree(pending == 0) and dist.get_rank() == 0:
            print("all done")
    label = "lead" if dist.get_rank() == 0 else "other"
    ready = all_agree(label in ("lead", "other")) or None
    assert ready
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
