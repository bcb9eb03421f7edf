import os

from transformers import Trainer, TrainerCallback, TrainingArguments


class KeepBest(TrainerCallback):
    def __init__(self):
        self.trainer = None
        self.best = float("inf")

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        loss = metrics["eval_loss"]
        if loss >= self.best:
            return
        self.best = loss
        # every rank takes part in gathering; the trainer writes on one of them
        self.trainer.save_model(os.path.join(args.output_dir, "best"))


def main(model, train_set, eval_set):
    args = TrainingArguments(
        "runs/sft",
        per_device_train_batch_size=1,
        eval_strategy="steps",
        eval_steps=200,
        save_strategy="no",
        fsdp="full_shard auto_wrap",
        fsdp_config={"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
    )
    keeper = KeepBest()
    trainer = Trainer(model=model, args=args, train_dataset=train_set,
                      eval_dataset=eval_set, callbacks=[keeper])
    keeper.trainer = trainer
    trainer.train()
