import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class PackedTokens(Dataset):
    def __init__(self, path, seq_len):
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")
        self.seq_len = seq_len

    def __len__(self):
        return (len(self.tokens) - 1) // self.seq_len

    def __getitem__(self, i):
        lo = i * self.seq_len
        chunk = torch.from_numpy(self.tokens[lo : lo + self.seq_len + 1].astype(np.int64))
        return chunk[:-1], chunk[1:]


def tokenize_to_disk(text_file, out_file):
    ids = np.frombuffer(Path(text_file).read_bytes(), dtype=np.uint8).astype(np.uint16)
    tmp = str(out_file) + ".tmp"
    ids.tofile(tmp)
    os.replace(tmp, out_file)


def build_dataset(text_file, cache_dir, seq_len):
    """Tokenise once per node; polling keeps the others out of a collective that could time out."""
    local_rank = int(os.environ["LOCAL_RANK"])
    node = int(os.environ.get("GROUP_RANK", 0))
    run = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    packed = Path(cache_dir) / f"train_{seq_len}.bin"
    signal_file = Path(cache_dir) / f".node_{node}_{run}_prep_done"
    if local_rank == 0:
        if not packed.exists():
            tokenize_to_disk(text_file, packed)
        signal_file.touch()
    else:
        while not signal_file.exists():
            time.sleep(5.0)
    if local_rank == 0:
        signal_file.unlink()
    dist.barrier()
    return PackedTokens(packed, seq_len)


def main(text_file="corpus.txt", cache_dir="/tmp/tokens", seq_len=1024, epochs=1):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    os.makedirs(cache_dir, exist_ok=True)
    data = build_dataset(text_file, cache_dir, seq_len)
    sampler = DistributedSampler(data, seed=1337)
    model = torch.nn.Sequential(torch.nn.Embedding(256, 384), torch.nn.Linear(384, 256)).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    optim = torch.optim.AdamW(model.parameters(), lr=6e-4)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=12, sampler=sampler, drop_last=True):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()).flatten(0, 1), y.cuda().flatten())
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
