import logging

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer

from online.client import GenerationServer
from online.losses import preference_loss
from online.rewards import PairScorer

log = logging.getLogger("online-dpo")


class OnlinePreferenceTrainer:
    def __init__(self, name, dataset, server_url, batch_size=4, lr=5e-7):
        self.accelerator = Accelerator()
        self.tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(name)
        self.reference = AutoModelForCausalLM.from_pretrained(name).to(self.accelerator.device).eval()
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True, collate_fn=list)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)
        self.scorer = PairScorer(self.accelerator.device)
        self.server = GenerationServer(server_url) if self.accelerator.is_main_process else None

    def complete(self, prompts):
        """Two answers for each local prompt, all generated through the main process."""
        everything = gather_object(prompts)
        if self.accelerator.is_main_process:
            pairs = self.server.generate(everything, n=2, max_tokens=512)
        else:
            pairs = [None] * len(prompts)
        broadcast_object_list(pairs, from_process=0)
        begin = self.accelerator.process_index * len(prompts)
        return pairs[begin:begin + len(prompts)]

    def step(self, rows):
        prompts = [row["prompt"] for row in rows]
        pairs = self.complete(prompts)
        chosen = self.scorer.pick(prompts, pairs)
        loss, margin = preference_loss(self.model, self.reference, self.tokenizer, prompts, pairs, chosen)
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return self.accelerator.reduce(margin.detach(), reduction="mean").item()

    def train(self, epochs=1):
        for epoch in range(epochs):
            for i, rows in enumerate(self.loader):
                margin = self.step(rows)
                if i % 10 == 0 and self.accelerator.is_main_process:
                    log.info("epoch %d step %d margin %.4f", epoch, i, margin)
