import deepspeed
import torch
from accelerate import Accelerator, DeepSpeedPlugin
from accelerate.utils import broadcast_object_list, gather_object
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlkit.client import GenerationClient
from rlkit.data import prompt_loader
from rlkit.losses import group_relative_loss


class GroupRelativeTrainer:
    def __init__(self, name: str, group_size: int = 8, sync_every: int = 1):
        self.accelerator = Accelerator(
            mixed_precision="bf16", deepspeed_plugin=DeepSpeedPlugin(zero_stage=3, gradient_accumulation_steps=1)
        )
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(
            model, optimizer, prompt_loader("data/math.jsonl", batch_size=4)
        )
        self.group_size, self.sync_every = group_size, sync_every
        self.client = GenerationClient("http://gen:8000") if self.accelerator.is_main_process else None

    def push_weights(self):
        model = self.accelerator.unwrap_model(self.model)
        if self.accelerator.is_main_process:
            for name, param in model.named_parameters():
                with deepspeed.zero.GatheredParameters([param]):
                    self.client.update_named_param(name, param.data)
            self.client.reset_prefix_cache()
        self.accelerator.wait_for_everyone()

    def generate(self, prompts):
        everything = gather_object(prompts)
        answers = [None] * len(everything)
        if self.accelerator.is_main_process:
            answers = self.client.generate(everything, n=self.group_size)
        broadcast_object_list(answers, from_process=0)
        start = self.accelerator.process_index * len(prompts)
        return answers[start:start + len(prompts)]

    def train(self, steps: int):
        batches = iter(self.loader)
        for step in range(steps):
            batch = next(batches)
            if step % self.sync_every == 0:
                self.push_weights()
            answers = self.generate(batch["prompt"])
            loss = group_relative_loss(self.model, self.tokenizer, batch, answers)
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()


if __name__ == "__main__":
    GroupRelativeTrainer("Qwen/Qwen2.5-7B").train(steps=800)
