import time

import lightning.pytorch as pl
import torch
import torch.distributed as dist


class SlowRankCallback(pl.Callback):
    """Compares the step times of the ranks and stops the run if one is much slower than the rest."""

    def __init__(self, every_n_steps: int = 100, threshold: float = 0.6):
        self.every, self.threshold = every_n_steps, threshold
        self._times = []
        self._t0 = None

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._t0 = time.perf_counter()

    def _share_from_rank0(self, flag: bool, device) -> bool:
        t = torch.tensor([1.0 if flag else 0.0], device=device)
        dist.broadcast(t, src=0)
        return bool(t.item() > 0)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._times.append(time.perf_counter() - self._t0)
        if trainer.world_size == 1 or (batch_idx + 1) % self.every:
            return
        mine = torch.tensor([sum(self._times) / len(self._times)], device=pl_module.device)
        self._times.clear()
        table = [torch.zeros_like(mine) for _ in range(trainer.world_size)] if trainer.global_rank == 0 else None
        dist.gather(mine, table, dst=0)
        slow = []
        if trainer.global_rank == 0:
            times = torch.cat(table)
            relative = times.min() / times
            slow = [r for r, s in enumerate(relative.tolist()) if s < self.threshold]
            if slow:
                print(f"slow ranks: {slow}")
        if self._share_from_rank0(bool(slow), pl_module.device):
            trainer.should_stop = True


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 2)

    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.randn(65536, 64))
    loader = torch.utils.data.DataLoader(data, batch_size=32, drop_last=True)
    pl.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=2, callbacks=[SlowRankCallback()]).fit(
        Net(), loader
    )
