import deepspeed
import torch
from torch import nn


class Captioner(nn.Module):
    def __init__(self, tower, bridge, lm, image_token, image_shape=(3, 224, 224)):
        super().__init__()
        self.tower, self.bridge, self.lm = tower, bridge, lm
        self.image_token, self.image_shape = image_token, image_shape

    def forward(self, input_ids, labels, pixels=None):
        embeds = self.lm.get_input_embeddings()(input_ids)
        blank = pixels is None
        if blank:
            pixels = embeds.new_zeros((1, *self.image_shape))
        patches = self.bridge(self.tower(pixels)).to(embeds.dtype)
        if blank:
            embeds = embeds + patches.mean() * 0.0
        else:
            where = (input_ids == self.image_token).unsqueeze(-1)
            embeds = embeds.masked_scatter(where, patches)
        return self.lm(inputs_embeds=embeds, labels=labels).loss


def collate(rows):
    pictures = [r["pixels"] for r in rows if r.get("pixels") is not None]
    return {
        "input_ids": torch.stack([r["input_ids"] for r in rows]),
        "labels": torch.stack([r["labels"] for r in rows]),
        "pixels": torch.stack(pictures) if pictures else None,
    }


def train(model, loader, zero3_config):
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                      config=zero3_config)
    for batch in loader:
        engine.backward(engine(**batch))
        engine.step()
