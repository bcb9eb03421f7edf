from datetime import timedelta

import torch
import torch.distributed as dist

HEADER, BODY = 1, 2


def hand_over(text):
    body = torch.tensor([ord(c) for c in text])
    works = [
        dist.isend(torch.tensor([len(text)]), dst=1, tag=HEADER),
        dist.isend(body, dst=1, tag=BODY),
    ]
    for work in works:
        work.wait()


def take():
    length = torch.zeros(1, dtype=torch.long)
    dist.recv(length, src=0, tag=HEADER)
    body = torch.zeros(int(length), dtype=torch.long)
    dist.recv(body, src=0, tag=BODY)
    return "".join(chr(c) for c in body.tolist())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    rank = dist.get_rank()
    if rank == 0:
        hand_over("hello")
    elif rank == 1:
        print(take())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
