import os
import signal
import sys

import torch
import torch.distributed as dist


class Runner:
    def __init__(self, model, optimizer, folder):
        self.model, self.optimizer, self.folder = model, optimizer, folder
        self.step = 0
        signal.signal(signal.SIGTERM, self._terminate)

    def save_restart(self):
        path = os.path.join(self.folder, "restart.pt")
        torch.save({"step": self.step, "model": self.model.state_dict()}, path)

    def _shutdown(self):
        dist.barrier()
        dist.destroy_process_group()

    def _terminate(self, signum, frame):
        if dist.get_rank() == 0:
            self.save_restart()
        self._shutdown()
        sys.exit(128 + signum)

    def run(self, data):
        for x in data:
            loss = self.model(x).mean()
            loss.backward()
            for p in self.model.parameters():
                dist.all_reduce(p.grad)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.step += 1
        dist.barrier()
        dist.destroy_process_group()
