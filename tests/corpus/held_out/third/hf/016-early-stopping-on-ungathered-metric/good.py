import numpy as np
import torch
from accelerate.utils import gather_object
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments
from transformers.trainer_utils import EvalLoopOutput


def span_f1(predicted, gold):
    hit = sum(len(p & g) for p, g in zip(predicted, gold))
    found, wanted = sum(map(len, predicted)), sum(map(len, gold))
    return 2 * hit / max(found + wanted, 1)


class SpanTrainer(Trainer):
    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"):
        model = self._wrap_model(self.model, training=False)
        model.eval()
        predicted, gold, losses = [], [], []
        for batch in dataloader:
            batch = self._prepare_inputs(batch)
            with torch.no_grad():
                out = model(**batch)
            losses.append(out.loss.item())
            predicted.extend(set(s) for s in out.spans)
            gold.extend(set(s) for s in batch["spans"])
        predicted, gold, losses = gather_object(predicted), gather_object(gold), gather_object(losses)
        metrics = {
            f"{metric_key_prefix}_loss": float(np.mean(losses)),
            f"{metric_key_prefix}_f1": span_f1(predicted, gold),
        }
        return EvalLoopOutput(predictions=None, label_ids=None, metrics=metrics, num_samples=len(gold))


def train(model, train_set, dev_set, collator):
    args = TrainingArguments(
        "spans",
        eval_strategy="steps",
        eval_steps=200,
        save_steps=200,
        load_best_model_at_end=True,
        metric_for_best_model="f1",
        num_train_epochs=20,
    )
    trainer = SpanTrainer(
        model=model,
        args=args,
        train_dataset=train_set,
        eval_dataset=dev_set,
        data_collator=collator,
        callbacks=[EarlyStoppingCallback(early_stopping_patience=3)],
    )
    trainer.train()
