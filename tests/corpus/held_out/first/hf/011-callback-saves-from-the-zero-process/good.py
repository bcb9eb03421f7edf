import sys
from dataclasses import dataclass, field
from pathlib import Path

from datasets import load_dataset
from peft import LoraConfig
from transformers import HfArgumentParser, TrainerCallback
from trl import SFTConfig, SFTTrainer


@dataclass
class Options:
    model: str = field(default="HuggingFaceTB/SmolLM2-135M-Instruct")
    dataset: str = field(default="trl-lib/Capybara")
    keep_epochs: bool = field(default=True, metadata={"help": "one adapter per epoch"})
    rank: int = field(default=16)


class AdapterPerEpoch(TrainerCallback):
    def __init__(self, trainer, root):
        self.trainer = trainer
        self.root = Path(root)

    def on_epoch_end(self, args, state, control, **kwargs):
        folder = self.root / f"epoch-{round(state.epoch)}"
        folder.mkdir(parents=True, exist_ok=True)
        self.trainer.save_model(str(folder))
        if state.is_world_process_zero:
            (folder / "state.json").write_text(repr(state.log_history[-1:]))
        return control


def sft_config(extra):
    return SFTConfig(
        output_dir="out/sft",
        num_train_epochs=3,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        bf16=True,
        fsdp="full_shard auto_wrap",
        fsdp_config={"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
        save_strategy="no",
        logging_steps=5,
        **extra,
    )


def main(argv):
    (opts,) = HfArgumentParser(Options).parse_args_into_dataclasses(argv)
    args = sft_config({"max_length": 1024})
    trainer = SFTTrainer(
        model=opts.model,
        args=args,
        train_dataset=load_dataset(opts.dataset, split="train[:2000]"),
        peft_config=LoraConfig(r=opts.rank, lora_alpha=2 * opts.rank, target_modules="all-linear"),
    )
    if opts.keep_epochs:
        trainer.add_callback(AdapterPerEpoch(trainer, args.output_dir))
    trainer.train()


if __name__ == "__main__":
    main(sys.argv[1:])
