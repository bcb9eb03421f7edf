import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class CodonTask:
    def __init__(self, net, out_dir):
        self.model = DDP(net)
        self.out_dir = out_dir
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def _prepare_output(self):
        os.makedirs(self.out_dir, exist_ok=True)

    def write_predictions(self, step, logits):
        path = os.path.join(self.out_dir, f"pred_{step}_{dist.get_rank()}.pt")
        torch.save(logits, path)

    def run(self, loader):
        self._prepare_output()
        for step, (ids, labels) in enumerate(loader):
            logits = self.model(ids)
            loss = torch.nn.functional.cross_entropy(logits, labels)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % 100 == 0:
                self.write_predictions(step, logits.detach())
        dist.barrier()
