import torch
import torch.distributed as dist


def means(chunks):
    size = dist.get_world_size()
    for chunk in chunks:
        total = chunk.clone()
        dist.all_reduce(total)
        yield total / size


def main():
    dist.init_process_group("gloo")
    stream = means(torch.arange(12.0).chunk(3))
    if dist.get_rank() == 0:
        for i, mean in enumerate(stream):
            print(i, mean.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
