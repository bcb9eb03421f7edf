import torch
import lightning.pytorch as pl


class Tracker(pl.LightningModule):
    def __init__(self, net, evaluator):
        super().__init__()
        self.net, self.evaluator = net, evaluator

    def training_step(self, batch, batch_idx):
        loss = self.net(batch)["loss"]
        self.log("train/loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.evaluator.add(self.net(batch)["tracks"])

    def on_validation_epoch_end(self):
        if self.global_rank == 0:
            scores = self.evaluator.summarize()
            for name in ("mota", "idf1"):
                self.log(f"val/{name}", scores[name], sync_dist=True)
        self.evaluator.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-4)
