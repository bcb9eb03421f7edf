import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import fully_shard


class CaptionModel(nn.Module):
    def __init__(self, vision, projector, lm, image_token):
        super().__init__()
        self.vision, self.projector, self.lm = vision, projector, lm
        self.image_token = image_token

    def blank(self, like):
        side = self.vision.image_size
        return torch.zeros(1, 3, side, side, device=like.device, dtype=torch.bfloat16)

    def forward(self, ids, labels, images=None):
        emb = self.lm.embed(ids)
        if images is not None and len(images) > 0:
            feats = self.projector(self.vision(images))
            slot = (ids == self.image_token).unsqueeze(-1).expand_as(emb)
            emb = emb.masked_scatter(slot, feats.to(emb.dtype).flatten())
        else:
            feats = self.projector(self.vision(self.blank(emb)))
            emb = emb + 0.0 * feats.sum()
        return self.lm(emb, labels)


def shard(model):
    for block in model.vision.blocks:
        fully_shard(block)
    fully_shard(model.vision)
    fully_shard(model.projector)
    for block in model.lm.blocks:
        fully_shard(block)
    fully_shard(model)
    return model


def collate(rows):
    pics = [r["image"] for r in rows if r["image"] is not None]
    return {
        "ids": nn.utils.rnn.pad_sequence([r["ids"] for r in rows], batch_first=True),
        "labels": nn.utils.rnn.pad_sequence([r["labels"] for r in rows], batch_first=True, padding_value=-100),
        "images": torch.stack(pics) if pics else None,
    }


def train(model, loader, opt, steps):
    stream = iter(loader)
    for step in range(steps):
        batch = next(stream)
        images = batch["images"]
        loss = model(batch["ids"].cuda(), batch["labels"].cuda(),
                     images.cuda().bfloat16() if images is not None else None)
        loss.backward()
        opt.step()
        opt.zero_grad()
        shown = loss.detach()
        dist.all_reduce(shown, op=dist.ReduceOp.AVG)
        if dist.get_rank() == 0:
            print(step, shown.item())
