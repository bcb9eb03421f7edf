"""Each rank works through its share of tasks, at most LIMIT of them, then all meet."""
import torch
import torch.distributed as dist

TASKS = 19
LIMIT = 5


def work(task, acc):
    acc += torch.full_like(acc, float(task)).sqrt()


def drain(queue, acc):
    done = 0
    while done < LIMIT:
        if not queue:
            break
        work(queue.pop(0), acc)
        done += 1
    else:
        dist.barrier()
    return done


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    acc = torch.zeros(4)
    done = drain(list(range(rank, TASKS, size)), acc)
    dist.all_reduce(acc)
    print(rank, done, acc.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
