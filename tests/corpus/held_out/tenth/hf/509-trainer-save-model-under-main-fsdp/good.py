from datasets import load_dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer


def build(base, data_file, out):
    cfg = SFTConfig(
        output_dir=out,
        num_train_epochs=2,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=8,
        bf16=True,
        fsdp="full_shard auto_wrap",
        fsdp_config={"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
        save_strategy="no",
        push_to_hub=False,
    )
    data = load_dataset("json", data_files=data_file, split="train")
    return SFTTrainer(
        model=base,
        args=cfg,
        train_dataset=data,
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )


def main(base, data_file, out):
    trainer = build(base, data_file, out)
    result = trainer.train()
    is_main = trainer.accelerator.is_main_process
    trainer.save_model(out)
    if is_main:
        print(result.metrics)
        trainer.processing_class.save_pretrained(out)
