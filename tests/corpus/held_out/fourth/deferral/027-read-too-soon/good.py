import os
import queue
import threading

import torch
import torch.distributed as dist


class AsyncUploader:
    """Copies files in the background; errors are collected for the training thread."""

    def __init__(self, target):
        self.target = target
        self.errors = []
        self.jobs = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            name, payload = self.jobs.get()
            try:
                with open(os.path.join(self.target, name), "wb") as f:
                    f.write(payload)
            except OSError as e:
                self.errors.append(e)
            self.jobs.task_done()


def main(steps=200):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    uploader = AsyncUploader(os.environ.get("TARGET", "/mnt/results"))
    state = torch.zeros(100)
    for step in range(steps):
        update = torch.randn(100)
        dist.all_reduce(update)
        state += update
        if step % 10 == 0:
            uploader.jobs.put((f"{rank}-{step}.bin", state.numpy().tobytes()))
        flag = torch.tensor([len(uploader.errors)])
        dist.all_reduce(flag)
        failed = flag.item() > 0
        if failed:
            break
    uploader.jobs.join()
    dist.barrier()
    dist.destroy_process_group()
    if uploader.errors:
        raise uploader.errors[0]


if __name__ == "__main__":
    main()
