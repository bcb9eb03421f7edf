import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class Watcher(threading.Thread):
    def __init__(self, path: Path, seconds: float = 0.5):
        super().__init__(daemon=True)
        self.path, self.seconds = path, seconds
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            if self.path.exists():
                self.stop.set()
            time.sleep(self.seconds)


def walk(watcher, limit):
    position, steps = torch.zeros(3), 0
    while steps < limit:
        move = torch.randn(3)
        dist.all_reduce(move)
        position += move / dist.get_world_size()
        steps += 1
        wish = torch.tensor([int(watcher.stop.is_set())])
        dist.all_reduce(wish, op=dist.ReduceOp.MAX)
        if wish.item():
            break
    return position, steps


def main(path="/shared/stop"):
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    torch.manual_seed(dist.get_rank())
    watcher = Watcher(Path(path))
    watcher.start()
    position, steps = walk(watcher, limit=1_000_000)
    dist.barrier()
    dist.destroy_process_group()
    print(steps, position.tolist())


if __name__ == "__main__":
    main()
