import torch
import torch.distributed as dist

NUM_CLASSES = 10


def class_counts(labels):
    counts = torch.bincount(labels)
    dist.all_reduce(counts)
    return counts / counts.sum()


def main():
    dist.init_process_group("gloo")
    gen = torch.Generator().manual_seed(40 + dist.get_rank())
    labels = torch.randint(0, NUM_CLASSES, (12,), generator=gen)
    print(class_counts(labels))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
