import os
import signal
import sys

import torch
import torch.distributed as dist


class Runner:
    def __init__(self, model, optimizer, folder):
        self.model, self.optimizer, self.folder = model, optimizer, folder
        self.step = 0
        self.signum = None
        signal.signal(signal.SIGTERM, self._terminate)

    def save_restart(self):
        path = os.path.join(self.folder, "restart.pt")
        torch.save({"step": self.step, "model": self.model.state_dict()}, path)

    def _shutdown(self):
        dist.barrier()
        dist.destroy_process_group()

    def _terminate(self, signum, frame):
        self.signum = signum

    def _leaving(self):
        flag = torch.tensor([int(self.signum is not None)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def run(self, data):
        for x in data:
            loss = self.model(x).mean()
            loss.backward()
            for p in self.model.parameters():
                dist.all_reduce(p.grad)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.step += 1
            if self._leaving():
                if dist.get_rank() == 0:
                    self.save_restart()
                break
        self._shutdown()
