import threading

import torch
import torch.distributed as dist


def beat(quiet, counts):
    while not quiet.wait(0.05):
        counts["beats"] += 1


def main():
    dist.init_process_group("gloo")
    quiet, counts, thread = threading.Event(), {"beats": 0}, None
    if dist.get_rank() == 0:
        thread = threading.Thread(target=beat, args=(quiet, counts), daemon=True)
        thread.start()
    t = torch.ones(256)
    for _ in range(20):
        dist.all_reduce(t)
        t /= dist.get_world_size()
    if thread is not None:
        quiet.set()
        thread.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
