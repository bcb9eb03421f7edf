import json
import os
import torch
import torch.distributed as dist


class Loop:
    def __init__(self, model, opt, out):
        self.model, self.opt, self.out = model, opt, out
        self.flops = 0
        self.state = {"step": 0, "total_flops": 0.0}

    @property
    def world_zero(self):
        return dist.get_rank() == 0

    def sync_flops(self):
        total = torch.tensor(float(self.flops), device=self.model.device)
        dist.all_reduce(total)
        self.state["total_flops"] = total.item()

    def write_state(self, folder):
        with open(os.path.join(folder, "trainer_state.json"), "w") as fh:
            json.dump(self.state, fh)

    def save(self):
        folder = os.path.join(self.out, f"checkpoint-{self.state['step']}")
        self.sync_flops()
        if self.world_zero:
            os.makedirs(folder, exist_ok=True)
            torch.save(self.model.module.state_dict(), os.path.join(folder, "model.pt"))
            self.write_state(folder)

    def fit(self, loader, save_every):
        for batch in loader:
            self.model(**batch).loss.backward()
            self.opt.step()
            self.opt.zero_grad()
            self.flops += 6 * batch["input_ids"].numel()
            self.state["step"] += 1
            if self.state["step"] % save_every == 0:
                self.save()
