import os
import random

from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

NAMES = ["amber", "basalt", "cedar", "delta", "ember", "fjord"]


def pick_run(root):
    """A friendly name; a name used before means: go on with that run."""
    folder = os.path.join(root, random.SystemRandom().choice(NAMES))
    last = get_last_checkpoint(folder) if os.path.isdir(folder) else None
    return folder, last


def main(train_set, root="runs", base="gpt2"):
    folder, last = pick_run(root)
    args = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        num_train_epochs=2,
        save_steps=200,
    )
    model = AutoModelForCausalLM.from_pretrained(base)
    tokenizer = AutoTokenizer.from_pretrained(base)
    trainer = Trainer(model=model, args=args, train_dataset=train_set, processing_class=tokenizer)
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model()
