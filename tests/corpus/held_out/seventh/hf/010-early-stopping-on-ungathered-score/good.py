import torch
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments


class TreeTrainer(Trainer):
    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        self.model.eval()
        exact, total = 0, 0
        for batch in self.get_eval_dataloader(eval_dataset):
            batch = self._prepare_inputs(batch)
            with torch.no_grad():
                trees = self.model.parse(batch["input_ids"])
            exact += sum(t == g for t, g in zip(trees, batch["trees"]))
            total += len(trees)
        counts = torch.tensor([exact, total], dtype=torch.float64, device=self.args.device)
        exact, total = self.accelerator.reduce(counts, reduction="sum").tolist()
        metrics = {f"{metric_key_prefix}_exact": exact / max(1, total)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


def main(model, train_set, eval_set, collate):
    args = TrainingArguments(
        "out", num_train_epochs=50, eval_strategy="epoch", save_strategy="epoch",
        load_best_model_at_end=True, metric_for_best_model="exact", remove_unused_columns=False,
    )
    trainer = TreeTrainer(
        model=model, args=args, train_dataset=train_set, eval_dataset=eval_set,
        data_collator=collate, callbacks=[EarlyStoppingCallback(early_stopping_patience=3)],
    )
    trainer.train()
