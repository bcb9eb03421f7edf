import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Images(Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        return index, torch.rand(3, 128, 128, generator=g)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Conv2d(3, 5, 8, stride=8)

    @torch.no_grad()
    def detect(self, image, threshold):
        out = self.backbone(image[None])[0].flatten(1).t()
        keep = out[:, 4].sigmoid() > threshold
        return out[keep]


def gather_rows(rows):
    """Concatenate the rows of all ranks, in rank order."""
    world = dist.get_world_size()
    if world == 1:
        return rows
    buffers = [torch.empty_like(rows) for _ in range(world)]
    dist.all_gather(buffers, rows)
    return torch.cat(buffers)


def evaluate(model, loader, device, threshold=0.6):
    model.eval()
    collected = []
    for indices, images in loader:
        for index, image in zip(indices.tolist(), images.to(device)):
            det = model.detect(image, threshold)
            tag = det.new_full((det.size(0), 1), float(index))
            collected.append(torch.cat([tag, det], dim=1))
    mine = torch.cat(collected)
    return gather_rows(mine)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    torch.manual_seed(3)
    model = Detector().to(device)
    dataset = Images()
    sampler = DistributedSampler(dataset, shuffle=False)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    rows = evaluate(model, loader, device)
    if dist.get_rank() == 0:
        per_image = rows[:, 0].long().bincount(minlength=len(dataset))
        print(f"{rows.size(0)} detections, at most {int(per_image.max())} per image")
        torch.save(rows.cpu(), "detections.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
