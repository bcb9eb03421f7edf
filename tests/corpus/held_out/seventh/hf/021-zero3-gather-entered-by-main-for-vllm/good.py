import deepspeed
import torch
from accelerate import Accelerator
from accelerate.utils import DeepSpeedPlugin
from trl.extras.vllm_client import VLLMClient


class WeightPusher:
    def __init__(self, accelerator, model, host):
        self.accelerator, self.model, self.client = accelerator, model, None
        if accelerator.is_main_process:
            self.client = VLLMClient(host=host)
            self.client.init_communicator()

    def push(self):
        net = self.accelerator.unwrap_model(self.model)
        for name, param in net.named_parameters():
            with deepspeed.zero.GatheredParameters([param]):
                if self.accelerator.is_main_process:
                    self.client.update_named_param(name, param.data)
        if self.accelerator.is_main_process:
            self.client.reset_prefix_cache()
        self.accelerator.wait_for_everyone()


def train(model, loader, loss_fn, host, push_every):
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-6)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    pusher = WeightPusher(accelerator, model, host)
    for step, batch in enumerate(loader):
        if step % push_every == 0:
            pusher.push()
        accelerator.backward(loss_fn(model, batch))
        opt.step()
        opt.zero_grad()
