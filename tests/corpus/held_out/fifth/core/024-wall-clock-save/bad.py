import os
import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


@dataclass
class SaveTimer:
    minutes: float
    last: float = field(default_factory=time.monotonic)

    def due(self) -> bool:
        return time.monotonic() - self.last >= 60 * self.minutes

    def reset(self) -> None:
        self.last = time.monotonic()


def full_state(model):
    policy = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, policy):
        return model.state_dict()


class Trainer:
    def __init__(self, folder, minutes):
        self.folder = folder
        self.timer = SaveTimer(minutes)
        layers = [nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True) for _ in range(6)]
        self.model = FSDP(nn.Sequential(*layers), device_id=torch.cuda.current_device())
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.global_step = 0

    def save_checkpoint(self):
        state = full_state(self.model)
        if dist.get_rank() == 0:
            os.makedirs(self.folder, exist_ok=True)
            torch.save(state, os.path.join(self.folder, f"step{self.global_step}.pt"))
        self.timer.reset()

    def train_batch(self, batch):
        loss = (self.model(batch) - batch).pow(2).mean()
        loss.backward()
        self.optim.step()
        self.optim.zero_grad(set_to_none=True)
        self.global_step += 1
        return loss

    def fit(self, batches):
        for batch in batches:
            self.train_batch(batch.cuda(non_blocking=True))
            if self.timer.due():
                self.save_checkpoint()
        self.save_checkpoint()


def random_batches(count, seed):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield torch.randn(8, 128, 768, generator=rng)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.manual_seed(1234)
    trainer = Trainer(os.environ.get("SAVE_FOLDER", "/weka/run"), minutes=30)
    trainer.fit(random_batches(100_000, seed=dist.get_rank()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
