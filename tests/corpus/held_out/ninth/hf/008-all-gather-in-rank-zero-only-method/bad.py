import torch
import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_only


class Retriever(pl.LightningModule):
    def __init__(self, tower):
        super().__init__()
        self.tower = tower
        self.query, self.target = [], []

    def validation_step(self, batch, batch_idx):
        self.query.append(self.tower(batch["query"]))
        self.target.append(self.tower(batch["target"]))

    @rank_zero_only
    def report_recall(self):
        q = self.all_gather(torch.cat(self.query)).flatten(0, 1)
        t = self.all_gather(torch.cat(self.target)).flatten(0, 1)
        hit = (q @ t.T).argmax(dim=1) == torch.arange(len(q), device=q.device)
        self.logger.log_metrics({"val/recall@1": hit.float().mean().item()}, step=self.global_step)

    def on_validation_epoch_end(self):
        self.report_recall()
        self.query.clear()
        self.target.clear()

    def training_step(self, batch, batch_idx):
        score = self.tower(batch["query"]) @ self.tower(batch["target"]).T
        return torch.nn.functional.cross_entropy(score, torch.arange(len(score), device=self.device))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)
