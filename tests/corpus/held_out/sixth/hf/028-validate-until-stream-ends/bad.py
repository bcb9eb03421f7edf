import os
from typing import Iterator

import torch
import torch.distributed as dist
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch.distributed.fsdp import fully_shard

from titanette.model import Transformer, model_args
from titanette.tokenizer import Tokenizer


class PackedStream:
    def __init__(self, path, tokenizer, seq_len, rank, world):
        data = load_dataset("json", data_files=path, split="train", streaming=True)
        self.data = split_dataset_by_node(data, rank, world)
        self.tokenizer, self.seq_len = tokenizer, seq_len

    def __iter__(self) -> Iterator[torch.Tensor]:
        buffer = []
        for row in self.data:
            buffer.extend(self.tokenizer.encode(row["text"], bos=True, eos=True))
            while len(buffer) > self.seq_len:
                yield torch.tensor([buffer[:self.seq_len + 1]])
                buffer = buffer[self.seq_len:]


class Validator:
    def __init__(self, stream: PackedStream, device):
        self.stream, self.device = stream, device

    @torch.no_grad()
    def validate(self, model):
        model.eval()
        total = torch.zeros(2, device=self.device)
        for tokens in self.stream:
            tokens = tokens.to(self.device)
            logits = model(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
            total += torch.stack([loss, torch.ones_like(loss)])
        dist.all_reduce(total)
        model.train()
        return (total[0] / total[1]).item()


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = Transformer(model_args["8B"]).to(device)
    for block in model.layers.values():
        fully_shard(block)
    fully_shard(model)
    stream = PackedStream("data/c4_val.jsonl", Tokenizer("tok.model"), 8192, dist.get_rank(), dist.get_world_size())
    loss = Validator(stream, device).validate(model)
    if dist.get_rank() == 0:
        print(f"validation loss {loss:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
