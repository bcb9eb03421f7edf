import os
import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file


class AdapterSaver:
    def __init__(self, accelerator, root):
        self.accelerator, self.root = accelerator, root

    def save(self, model, tag):
        full = self.accelerator.get_state_dict(model)
        if not self.accelerator.is_main_process:
            return
        where = os.path.join(self.root, tag)
        os.makedirs(where, exist_ok=True)
        plain = self.accelerator.unwrap_model(model)
        tensors = get_peft_model_state_dict(plain, state_dict=full)
        save_file({k: v.contiguous().cpu() for k, v in tensors.items()},
                  os.path.join(where, "adapter_model.safetensors"))


def train(base, loader, root, epochs=1):
    plugin = FullyShardedDataParallelPlugin(state_dict_type="FULL_STATE_DICT")
    accelerator = Accelerator(fsdp_plugin=plugin, mixed_precision="bf16")
    model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    model = accelerator.prepare(model)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    opt, loader = accelerator.prepare(opt, loader)
    saver = AdapterSaver(accelerator, root)
    for epoch in range(epochs):
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
        saver.save(model, f"epoch{epoch}")
        accelerator.wait_for_everyone()
