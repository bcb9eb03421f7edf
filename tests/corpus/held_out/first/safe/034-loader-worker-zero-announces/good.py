import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Rows(Dataset):
    def __init__(self, n, offset):
        self.n, self.offset = n, offset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([float(i + self.offset)])


def init_worker(worker_id):
    info = get_worker_info()
    if info is None or info.id != 0:
        return
    print("loader started with seed", info.seed)


def main(workers=0):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = DataLoader(
        Rows(12, offset=100 * rank),
        batch_size=4,
        num_workers=workers,
        worker_init_fn=init_worker,
    )
    for batch in loader:
        mean = batch.mean().reshape(1)
        dist.all_reduce(mean)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
