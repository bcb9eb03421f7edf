from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    if not dist.get_rank():
        role = "reader"
    else:
        role = "writer"
    if role == "writer":
        print("writing")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
