import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, AutoTokenizer
from seqeval.metrics import f1_score

from nerlab.data import NerDataset, collate, id_to_tag


class SpanTagger(pl.LightningModule):
    def __init__(self, name="bert-base-cased", num_tags=9, lr=3e-5, out="best.ckpt"):
        super().__init__()
        self.save_hyperparameters()
        self.net = AutoModelForTokenClassification.from_pretrained(name, num_labels=num_tags)
        self.best = 0.0
        self.gold, self.pred = [], []

    def training_step(self, batch, _):
        loss = self.net(**batch).loss
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        out = self.net(**batch)
        self.log("val_loss", out.loss, sync_dist=True)
        for tags, guess in zip(batch["labels"].tolist(), out.logits.argmax(-1).tolist()):
            keep = [i for i, t in enumerate(tags) if t != -100]
            self.gold.append([id_to_tag[tags[i]] for i in keep])
            self.pred.append([id_to_tag[guess[i]] for i in keep])

    def on_validation_epoch_end(self):
        local = torch.tensor(f1_score(self.gold, self.pred), device=self.device)
        score = self.all_gather(local).mean().item()
        self.gold.clear()
        self.pred.clear()
        if self.trainer.sanity_checking:
            return
        self.print(f"epoch {self.current_epoch}: span F1 {score:.4f}")
        if score > self.best:
            self.best = score
            self.trainer.save_checkpoint(self.hparams.out)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main():
    tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
    make = lambda split, shuffle: DataLoader(NerDataset(split, tokenizer), batch_size=16, shuffle=shuffle,
                                             collate_fn=collate, num_workers=4)
    trainer = pl.Trainer(devices=4, accelerator="gpu", strategy="ddp", max_epochs=50, enable_checkpointing=False)
    trainer.fit(SpanTagger(), make("train", True), make("dev", False))


if __name__ == "__main__":
    main()
