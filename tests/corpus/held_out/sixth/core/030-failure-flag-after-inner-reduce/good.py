import os
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class PreferenceTrainer:
    def __init__(self, model, ref, loader, beta=0.1, image_token=151655):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.model = DDP(model.to(self.device), device_ids=[self.device.index], broadcast_buffers=False)
        self.ref = ref.to(self.device).eval()
        self.loader, self.beta, self.image_token = loader, beta, image_token
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=5e-7)
        self.metrics = defaultdict(list)

    def _prepare(self, batch):
        ids = batch["ids"].to(self.device)
        found = (ids == self.image_token).sum().item()
        if found != batch["num_image_tokens"]:
            raise ValueError(f"{found} image tokens in the text, {batch['num_image_tokens']} expected")
        return ids

    def _logp(self, model, ids):
        logits = model(ids[:, :-1]).log_softmax(-1)
        return logits.gather(-1, ids[:, 1:, None]).squeeze(-1).sum(-1)

    def _log_metric(self, name, value):
        value = value.detach().clone()
        dist.all_reduce(value)
        self.metrics[name].append(value.item() / dist.get_world_size())

    def _compute_loss(self, batch):
        ids = batch["prepared"]
        chosen, rejected = self._logp(self.model, ids).chunk(2)
        with torch.no_grad():
            ref_c, ref_r = self._logp(self.ref, ids).chunk(2)
        margin = self.beta * ((chosen - ref_c) - (rejected - ref_r))
        self._log_metric("rewards/margin", margin.mean())
        self._log_metric("rewards/accuracy", (margin > 0).float().mean())
        return -nn.functional.logsigmoid(margin).mean()

    def training_step(self, batch):
        error, loss = None, None
        try:
            batch["prepared"] = self._prepare(batch)
        except ValueError as e:
            error = e
        failed = torch.tensor(float(error is not None), device=self.device)
        dist.all_reduce(failed, op=dist.ReduceOp.MAX)
        if failed.item() > 0:
            raise error or RuntimeError("another rank failed in this step, see its traceback")
        loss = self._compute_loss(batch)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.detach()

    def train(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for batch in self.loader:
                self.training_step(batch)
            if dist.get_rank() == 0:
                print(epoch, {k: sum(v) / len(v) for k, v in self.metrics.items() if v})


def main(model, ref, make_loader):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    PreferenceTrainer(model, ref, make_loader(dist.get_rank(), dist.get_world_size())).train(1)
    dist.destroy_process_group()
