import signal

from transformers import Trainer, TrainerCallback, TrainingArguments


class JITCheckpoint(TrainerCallback):
    """Saves as soon as the scheduler announces a preemption."""

    def __init__(self):
        self._preempted = False

    def on_train_begin(self, args, state, control, **kwargs):
        signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, signum, frame):
        self._preempted = True

    def on_step_end(self, args, state, control, **kwargs):
        if self._preempted:
            control.should_save = True
            control.should_training_stop = True
        return control


def train(model, dataset, out):
    args = TrainingArguments(
        out,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        deepspeed="zero3.json",
        save_strategy="steps",
        save_steps=500,
    )
    trainer = Trainer(model=model, args=args, train_dataset=dataset, callbacks=[JITCheckpoint()])
    trainer.train()
