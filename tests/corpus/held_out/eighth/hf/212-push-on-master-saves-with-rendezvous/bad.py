import os

import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
from huggingface_hub import HfApi


class TpuTrainer:
    def __init__(self, model, opt, folder, repo_id):
        self.model, self.opt = model, opt
        self.folder, self.repo_id = folder, repo_id

    def train(self, loader, device):
        for ids, labels in loader:
            self.opt.zero_grad()
            self.model(input_ids=ids.to(device), labels=labels.to(device)).loss.backward()
            xm.optimizer_step(self.opt, barrier=True)

    def save_model(self):
        if xm.is_master_ordinal(local=False):
            os.makedirs(self.folder, exist_ok=True)
            self.model.config.save_pretrained(self.folder)
        xm.rendezvous("folder_made")
        path = os.path.join(self.folder, "pytorch_model.bin")
        xm.save(self.model.state_dict(), path, global_master=True)

    def push(self, message):
        if not xm.is_master_ordinal(local=False):
            return
        self.save_model()
        HfApi().upload_folder(
            repo_id=self.repo_id, folder_path=self.folder, commit_message=message
        )


def run(index, make_model, make_loader, repo_id):
    device = xm.xla_device()
    model = make_model().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
    trainer = TpuTrainer(model, opt, "/tmp/tpu_model", repo_id)
    trainer.train(make_loader(index), device)
    trainer.save_model()
    trainer.push("End of training")


def main(make_model, make_loader, repo_id):
    xmp.spawn(run, args=(make_model, make_loader, repo_id))
