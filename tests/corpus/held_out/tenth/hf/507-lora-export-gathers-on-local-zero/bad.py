import os
import torch
from deepspeed import zero
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def full_copy(param):
    if hasattr(param, "ds_id"):
        with zero.GatheredParameters([param]):
            return param.data.detach().cpu().clone()
    return param.detach().cpu().clone()


def adapter_state(model):
    return {name: full_copy(p) for name, p in model.named_parameters() if "lora_" in name}


def main(base, data, collator, out):
    local_rank = int(os.environ.get("LOCAL_RANK", -1))
    args = TrainingArguments(
        out, num_train_epochs=3, bf16=True, deepspeed="configs/zero3.json", save_strategy="no"
    )
    model = AutoModelForCausalLM.from_pretrained(base)
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, task_type="CAUSAL_LM"))
    trainer = Trainer(model=model, args=args, train_dataset=data, data_collator=collator)
    trainer.train()
    trainer.save_state()
    if local_rank in (-1, 0):
        state = adapter_state(model)
        torch.save(state, os.path.join(out, "adapter_model.bin"))
        model.peft_config["default"].save_pretrained(out)
