import threading
from typing import Iterator, Tuple

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from asyncrl.client import SamplerClient
from asyncrl.losses import policy_loss


class AsyncPolicyTrainer:
    def __init__(self, model, optimizer, rollouts, sampler_url: str, sync_every: int = 4):
        self.model, self.optimizer, self.rollouts = model, optimizer, rollouts
        self.sync_every = sync_every
        self.rank = dist.get_rank()
        self.client = SamplerClient(sampler_url) if self.rank == 0 else None
        self._sender = None

    def _full_params(self) -> Iterator[Tuple[str, torch.Tensor]]:
        for name, param in self.model.named_parameters():
            value = param.detach()
            if isinstance(value, DTensor):
                value = value.full_tensor()
            yield name.replace("_checkpoint_wrapped_module.", ""), value.to(torch.bfloat16)

    def sync_weights(self):
        if self.rank == 0:
            self._sender = threading.Thread(target=self.client.stream_weights, args=(self._full_params(),))
            self._sender.start()
        else:
            for _ in self._full_params():
                pass

    def _mean(self, value: torch.Tensor) -> float:
        value = value.detach().clone()
        dist.all_reduce(value)
        return value.item() / dist.get_world_size()

    def train(self, steps: int):
        for step in range(1, steps + 1):
            batch = self.rollouts.next(device="cuda")
            loss, kl = policy_loss(self.model, batch)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % self.sync_every == 0:
                self.sync_weights()
            stats = {"loss": self._mean(loss), "kl": self._mean(kl)}
            if self._sender is not None:
                self._sender.join()
                self._sender = None
            if self.rank == 0:
                print(step, stats, flush=True)
