import os

import torch
from torch.distributed.device_mesh import init_device_mesh
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def load_sharded(name):
    mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),), mesh_dim_names=("tp",))
    return AutoModelForCausalLM.from_pretrained(name, tp_plan="auto", device_mesh=mesh)


class TensorParallelTrainer(Trainer):
    def _save(self, output_dir=None, state_dict=None):
        output_dir = output_dir or self.args.output_dir
        os.makedirs(output_dir, exist_ok=True)
        self.model.save_pretrained(output_dir, state_dict=state_dict)
        if not self.args.should_save:
            return
        if self.processing_class is not None:
            self.processing_class.save_pretrained(output_dir)
        torch.save(self.args, os.path.join(output_dir, "training_args.bin"))

    def save_model(self, output_dir=None, _internal_call=False):
        self._save(output_dir)


def finetune(name, train_set, tokenizer, out):
    args = TrainingArguments(
        output_dir=out,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        save_strategy="no",
        max_steps=500,
        bf16=True,
    )
    trainer = TensorParallelTrainer(
        model=load_sharded(name), args=args, train_dataset=train_set, processing_class=tokenizer
    )
    trainer.train()
    trainer.save_model(os.path.join(out, "last"))
