import json
import os
import torch
import torch.distributed as dist


class TinyTrainer:
    def __init__(self, model, opt, flops_per_token, out):
        self.model, self.opt, self.out = model, opt, out
        self.flops_per_token, self.flos = flops_per_token, 0.0
        self.state = {"step": 0, "total_flos": 0.0}

    def store_flos(self):
        total = torch.tensor([self.flos], dtype=torch.float64, device="cuda")
        dist.all_reduce(total)
        self.state["total_flos"] = total.item()

    def save(self):
        folder = os.path.join(self.out, f"checkpoint-{self.state['step']}")
        os.makedirs(folder, exist_ok=True)
        torch.save(self.model.module.state_dict(), os.path.join(folder, "pytorch_model.bin"))
        self.store_flos()
        with open(os.path.join(folder, "trainer_state.json"), "w") as fh:
            json.dump(self.state, fh)

    def train(self, loader, save_steps):
        for batch in loader:
            self.model(**batch).loss.backward()
            self.opt.step()
            self.opt.zero_grad()
            self.state["step"] += 1
            self.flos += self.flops_per_token * batch["input_ids"].numel()
            if self.state["step"] % save_steps == 0 and dist.get_rank() == 0:
                self.save()
