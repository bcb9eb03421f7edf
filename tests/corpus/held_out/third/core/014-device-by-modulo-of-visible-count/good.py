import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def pick_device():
    local_rank = int(os.environ["LOCAL_RANK"])
    visible = torch.cuda.device_count()
    if local_rank >= visible:
        raise RuntimeError(f"local rank {local_rank} but only {visible} visible devices")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


class TextEncoder(torch.nn.Module):
    def __init__(self, width=256, depth=4):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(width, 4, batch_first=True)
        self.stack = torch.nn.TransformerEncoder(layer, depth)

    def forward(self, tokens):
        return self.stack(tokens).mean(1)


def cache_embeds(encoder, prompts, device):
    with torch.no_grad():
        return [encoder(p.to(device)).cpu() for p in prompts]


def main():
    device = pick_device()
    dist.init_process_group("nccl", timeout=timedelta(minutes=15))
    encoder = TextEncoder().to(device).eval()
    prompts = [torch.randn(1, 12, 256) for _ in range(8)]
    embeds = cache_embeds(encoder, prompts, device)
    adapter = DDP(torch.nn.Linear(256, 64).to(device), device_ids=[device.index])
    opt = torch.optim.AdamW(adapter.parameters(), lr=1e-4)
    for embed in embeds * 10:
        loss = adapter(embed.to(device)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
