import signal
import torch
import torch.distributed as dist
from transformers import Trainer, TrainerCallback, TrainingArguments


class SaveOnPreemption(TrainerCallback):
    def __init__(self):
        self.signalled = False

    def _note(self, signum, frame):
        self.signalled = True

    def on_train_begin(self, args, state, control, **kwargs):
        signal.signal(signal.SIGTERM, self._note)

    def on_step_end(self, args, state, control, **kwargs):
        anyone = torch.tensor(int(self.signalled), device=args.device)
        if dist.is_initialized():
            dist.all_reduce(anyone, op=dist.ReduceOp.MAX)
        if anyone.item():
            control.should_save = True
            control.should_training_stop = True
        return control


def main(model, dataset, collator, out, resume=None):
    args = TrainingArguments(
        output_dir=out,
        num_train_epochs=3,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=16,
        bf16=True,
        deepspeed="configs/ds_z3_bf16.json",
        save_strategy="steps",
        save_steps=2000,
    )
    trainer = Trainer(
        model=model, args=args, train_dataset=dataset, data_collator=collator,
        callbacks=[SaveOnPreemption()],
    )
    trainer.train(resume_from_checkpoint=resume)
