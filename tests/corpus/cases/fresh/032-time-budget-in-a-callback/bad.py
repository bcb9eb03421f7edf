import argparse
import time

from transformers import AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments


class StopAfter(TrainerCallback):
    def __init__(self, seconds):
        self.seconds = seconds
        self.started = None

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        elapsed = time.monotonic() - self.started
        if elapsed > self.seconds:
            control.should_training_stop = True
        return control


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--stop-after-seconds", type=float, default=600)
    parser.add_argument("--out", default="out")
    cli = parser.parse_args()
    from corpus import tokenized

    trainer = Trainer(
        model=AutoModelForCausalLM.from_pretrained(cli.model),
        args=TrainingArguments(cli.out, per_device_train_batch_size=4, fsdp="full_shard auto_wrap"),
        train_dataset=tokenized("train"),
        callbacks=[StopAfter(cli.stop_after_seconds)],
    )
    trainer.train()


if __name__ == "__main__":
    main()
