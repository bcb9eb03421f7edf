from accelerate.utils import broadcast_object_list
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


def main(model, data, collator, out):
    args = TrainingArguments(
        out,
        deepspeed="zero2.json",
        per_device_train_batch_size=4,
        save_steps=500,
        max_steps=20_000,
    )
    trainer = Trainer(model=model, args=args, train_dataset=data, data_collator=collator)

    last = [None]
    if trainer.is_world_process_zero():
        last[0] = get_last_checkpoint(out)
        if last[0] is not None:
            print("found", last[0])
    broadcast_object_list(last, from_process=0)
    trainer.train(resume_from_checkpoint=last[0])
    trainer.save_model()
