import torch
import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_only
from torch import nn


class Denoiser(pl.LightningModule):
    def __init__(self, net, steps=50, eval_every=20):
        super().__init__()
        self.net = net
        self.steps = steps
        self.eval_every = eval_every

    def training_step(self, batch, batch_idx):
        noise = torch.randn_like(batch)
        t = torch.rand(batch.shape[0], 1, device=batch.device)
        guess = self.net(torch.cat([(1 - t) * batch + t * noise, t], 1))
        loss = nn.functional.mse_loss(guess, noise)
        self.log("loss", loss)
        return loss

    @rank_zero_only
    def draw_samples(self, count):
        x = torch.randn(count, self.net.width, device=self.device)
        for i in range(self.steps, 0, -1):
            t = torch.full((count, 1), i / self.steps, device=self.device)
            x = x - self.net(torch.cat([x, t], 1)) / self.steps
        torch.save(x.cpu(), f"samples_{self.current_epoch}.pt")

    def on_train_epoch_end(self):
        if (self.current_epoch + 1) % self.eval_every == 0:
            with torch.no_grad():
                self.draw_samples(64)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.trainer.model.parameters(), lr=2e-4)


def main(net, loader):
    trainer = pl.Trainer(accelerator="gpu", devices=8, strategy="fsdp", max_epochs=400)
    trainer.fit(Denoiser(net), loader)
