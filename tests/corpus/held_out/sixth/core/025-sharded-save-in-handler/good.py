import logging
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

log = logging.getLogger(__name__)


class SegTrainer:
    def __init__(self, model, loader, out_dir, lr=1e-4):
        self.rank = dist.get_rank()
        self.loader = loader
        self.out_dir = out_dir
        for block in model.blocks:
            fully_shard(block)
        self.model = fully_shard(model)
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.step = 0
        self.terminate = False
        signal.signal(signal.SIGTERM, self._on_term)

    def _on_term(self, signum, frame):
        log.warning("rank %d got signal %d, saving at the next step", self.rank, signum)
        self.terminate = True

    def save(self, name):
        opts = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state = get_model_state_dict(self.model, options=opts)
        if self.rank == 0:
            path = os.path.join(self.out_dir, name)
            torch.save({"model": state, "step": self.step}, path + ".part")
            os.replace(path + ".part", path)
        dist.barrier()

    def _should_stop(self):
        flag = torch.tensor(int(self.terminate), device="cuda")
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return flag.item() > 0

    def fit(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for image, mask in self.loader:
                logits = self.model(image.cuda(non_blocking=True))
                loss = torch.nn.functional.cross_entropy(logits, mask.cuda(non_blocking=True))
                loss.backward()
                self.optim.step()
                self.optim.zero_grad()
                self.step += 1
                if self._should_stop():
                    self.save("restart.pt")
                    return False
            self.save(f"epoch_{epoch:03d}.pt")
        return True


def main(build_model, build_loader, out_dir="out"):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    os.makedirs(out_dir, exist_ok=True)
    trainer = SegTrainer(build_model().cuda(), build_loader(), out_dir)
    finished = trainer.fit(epochs=50)
    dist.destroy_process_group()
    sys.exit(0 if finished else 143)
