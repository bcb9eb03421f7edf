import time

import torch.distributed as dist


def fetch_everywhere(fetch, tries=3):
    value, error = None, None
    for attempt in range(tries):
        try:
            value, error = fetch(attempt), None
            break
        except OSError as exc:
            error = f"{type(exc).__name__}: {exc}"
            time.sleep(0.01)
    errors = [None] * dist.get_world_size()
    dist.all_gather_object(errors, error)
    failed = {r: e for r, e in enumerate(errors) if e}
    if failed:
        raise RuntimeError(f"fetch failed: {failed}")
    return value


def flaky(attempt):
    if dist.get_rank() == 1 and attempt == 0:
        raise OSError("connection reset")
    return b"weights"


def main():
    dist.init_process_group("gloo")
    assert fetch_everywhere(flaky) == b"weights"
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
