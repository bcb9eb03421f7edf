import asyncio
from pathlib import Path

import torch
import torch.distributed as dist


async def read_rows(path, width):
    raw = await asyncio.to_thread(Path(path).read_bytes)
    usable = len(raw) // width * width
    return torch.frombuffer(bytearray(raw[:usable]), dtype=torch.uint8).view(-1, width).float()


class Stats:
    def __init__(self, root, rank):
        self.root, self.rank = root, rank

    async def part(self, name, width):
        rows = await read_rows(f"{self.root}/{name}-{self.rank}.bin", width)
        return torch.cat([rows.sum(0), torch.tensor([float(len(rows))])])

    @staticmethod
    def pooled(acc):
        dist.all_reduce(acc)
        return acc[:-1] / acc[-1].clamp(min=1)

    async def everything(self):
        image, text = await asyncio.gather(
            self.part("image", 768),
            self.part("text", 512),
        )
        return {"image": self.pooled(image), "text": self.pooled(text)}


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    means = asyncio.run(Stats("/data/embeddings", rank).everything())
    if rank == 0:
        torch.save(means, "means.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
