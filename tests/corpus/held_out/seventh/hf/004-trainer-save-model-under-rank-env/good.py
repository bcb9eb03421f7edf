import os
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer


def finetune(base, data, out):
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base)
    config = SFTConfig(
        output_dir=out,
        per_device_train_batch_size=2,
        num_train_epochs=2,
        bf16=True,
        save_strategy="no",
        fsdp="full_shard auto_wrap",
        fsdp_config={"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
    )
    trainer = SFTTrainer(
        model=model,
        args=config,
        train_dataset=data,
        processing_class=tokenizer,
        peft_config=LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    trainer.train()
    trainer.save_model(out)
    is_main = int(os.environ.get("RANK", "0")) == 0
    if is_main:
        tokenizer.save_pretrained(out)
        print(f"adapter written to {out}")
