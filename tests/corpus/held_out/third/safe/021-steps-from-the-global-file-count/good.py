from datetime import timedelta

import torch
import torch.distributed as dist


class Reader:
    def __init__(self, num_files, batch):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.files = list(range(self.rank, num_files, self.size))
        self.batch = batch
        self.steps = num_files // self.size // batch

    def __len__(self):
        return self.steps

    def read(self, step):
        return torch.tensor(self.files[step * self.batch:(step + 1) * self.batch], dtype=torch.float32)


def epoch(reader):
    done = 0
    for step in range(len(reader)):
        block = reader.read(step)
        assert len(block) == reader.batch
        done += len(block)
        dist.barrier()
    return done


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    reader = Reader(num_files=47, batch=5)
    assert epoch(reader) == 15
    total = torch.tensor([epoch(reader)])
    dist.all_reduce(total)
    assert int(total) == 15 * dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
