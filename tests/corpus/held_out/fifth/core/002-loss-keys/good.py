import os
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Crops(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, 64, 64, generator=g)
        mask = (torch.rand(64, 64, generator=g) > 0.999).long() * int(i % 7 == 0)
        return img, mask


class Segmentor(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU())
        self.sem_head = nn.Conv2d(width, 2, 1)
        self.mask_head = nn.Conv2d(width, 1, 1)

    def forward(self, img, target):
        feat = self.stem(img)
        losses = OrderedDict(loss_sem=F.cross_entropy(self.sem_head(feat), target))
        mask_logits = self.mask_head(feat).squeeze(1)
        pos = target > 0
        if pos.any():
            losses["loss_mask"] = F.binary_cross_entropy_with_logits(
                mask_logits[pos], torch.ones_like(mask_logits[pos])
            )
        else:
            losses["loss_mask"] = mask_logits.sum() * 0.0
        return losses


def parse_losses(losses):
    total = sum(losses.values())
    log_vars = OrderedDict((k, v) for k, v in losses.items())
    log_vars["loss"] = total
    for name, value in log_vars.items():
        value = value.detach().clone()
        dist.all_reduce(value.div_(dist.get_world_size()))
        log_vars[name] = value.item()
    return total, log_vars


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    dataset = Crops()
    sampler = DistributedSampler(dataset, drop_last=True)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=2, drop_last=True)
    model = DistributedDataParallel(
        Segmentor().cuda(), device_ids=[local_rank], find_unused_parameters=True
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for it, (img, mask) in enumerate(loader):
            loss, log_vars = parse_losses(model(img.cuda(), mask.cuda()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if dist.get_rank() == 0 and it % 50 == 0:
                print(epoch, it, {k: round(v, 4) for k, v in log_vars.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
