import time

import torch
import torch.distributed as dist


def all_ok(ok):
    flag = torch.tensor([int(ok)])
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())


def open_with_retry(open_fn, tries=4):
    for attempt in range(tries):
        handle = None
        try:
            handle = open_fn(attempt)
        except OSError as exc:
            print(f"rank {dist.get_rank()}: try {attempt}: {exc}")
        if all_ok(handle is not None):
            return handle
        time.sleep(0.01 * 2**attempt)
    raise RuntimeError(f"not every rank could open its shard in {tries} tries")


def flaky_open(attempt):
    if attempt < dist.get_rank():
        raise OSError("mount is not ready")
    return f"shard-{dist.get_rank()}"


def main():
    dist.init_process_group("gloo")
    assert open_with_retry(flaky_open).endswith(str(dist.get_rank()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
