import torch
from torch.distributed.tensor import DTensor
from transformers import Trainer


class ServerLink:
    def __init__(self, client):
        self.client = client
        self.open = False

    def connect(self, world):
        self.client.init_communicator(world)
        self.open = True

    def send(self, named):
        self.client.begin_update()
        for name, tensor in named:
            self.client.push(name, tensor)
        self.client.finish_update()


class OnlineTrainer(Trainer):
    def __init__(self, *args, link, sync_every=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.link = link
        self.sync_every = sync_every

    def full_weights(self):
        for name, param in self.model.named_parameters():
            tensor = param.full_tensor() if isinstance(param, DTensor) else param
            yield name.removeprefix("_orig_mod."), tensor.detach().to(torch.bfloat16)

    def sync_weights(self):
        weights = list(self.full_weights())
        if self.accelerator.is_main_process:
            if not self.link.open:
                self.link.connect(self.args.world_size)
            self.link.send(weights)
        self.accelerator.wait_for_everyone()

    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.accelerator.sync_gradients and self.state.global_step % self.sync_every == 0:
            self.sync_weights()
        return loss
