import json
import time
from pathlib import Path

from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer


class TrainModel:
    def __init__(self, config):
        self.config = config
        self.tokenizer = AutoTokenizer.from_pretrained(config["model"])
        base = AutoModelForCausalLM.from_pretrained(config["model"])
        lora = LoraConfig(r=config["rank"], lora_alpha=2 * config["rank"], task_type="CAUSAL_LM")
        self.model = get_peft_model(base, lora)

    def datasets(self):
        files = self.config["files"]
        return load_dataset("json", data_files=files, split="train").train_test_split(0.05, seed=7)

    def train_model(self):
        parts = self.datasets()
        trainer = SFTTrainer(
            model=self.model,
            args=SFTConfig(output_dir="outputs", num_train_epochs=self.config["epochs"], report_to="none"),
            train_dataset=parts["train"],
            eval_dataset=parts["test"],
            processing_class=self.tokenizer,
        )
        began = time.time()
        trainer.train(resume_from_checkpoint=self.config.get("resume"))
        final = Path("lora_model")
        if trainer.is_world_process_zero():
            self.model.save_pretrained(final)
            self.tokenizer.save_pretrained(final)
            (final / "summary.json").write_text(json.dumps({"seconds": time.time() - began}))
        return trainer


if __name__ == "__main__":
    with open("config.json") as handle:
        TrainModel(json.load(handle)).train_model()
