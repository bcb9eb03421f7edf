import numpy as np
import torch
import lightning.pytorch as pl


class Ranker(pl.LightningModule):
    def __init__(self, net, out):
        super().__init__()
        self.net, self.out = net, out
        self.scores = []

    def test_step(self, batch, batch_idx):
        self.scores.append(self.net(batch["x"]).squeeze(-1))

    def on_test_epoch_end(self):
        everything = self.all_gather(torch.cat(self.scores))
        if self.trainer.is_global_zero:
            np.save(self.out, everything.flatten().cpu().numpy())
        self.scores.clear()


def main(net, loader, ckpt, out):
    trainer = pl.Trainer(accelerator="gpu", devices=2, strategy="ddp", logger=False)
    module = Ranker.load_from_checkpoint(ckpt, net=net, out=out)
    trainer.test(module, loader)
