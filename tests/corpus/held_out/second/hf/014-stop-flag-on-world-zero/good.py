import time
from pathlib import Path

import torch.distributed as dist

from transformers import Trainer, TrainerCallback, TrainingArguments


class StopFile(TrainerCallback):
    """Ends training when somebody creates a file."""

    def __init__(self, path):
        self.path = Path(path)
        self.begun = time.time()

    def on_step_end(self, args, state, control, **kwargs):
        found = [state.is_world_process_zero and self.path.exists()]
        if dist.is_initialized():
            dist.broadcast_object_list(found, src=0)
        if found[0]:
            print(f"stopping after {time.time() - self.begun:.0f}s at step {state.global_step}")
            control.should_training_stop = True
        return control


def main(model, data):
    args = TrainingArguments(
        "out",
        per_device_train_batch_size=8,
        num_train_epochs=3,
        save_strategy="steps",
        save_steps=500,
        ddp_find_unused_parameters=False,
    )
    trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[StopFile("/shared/stop")])
    trainer.train()
    trainer.save_model("out/final")
