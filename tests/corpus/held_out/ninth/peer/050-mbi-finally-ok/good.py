from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    try:
        if dist.get_rank() == 0:
            raise KeyError("vocab")
        print("found")
    except KeyError as e:
        print("default for", e)
    finally:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
