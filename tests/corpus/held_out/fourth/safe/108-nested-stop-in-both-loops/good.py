import torch
import torch.distributed as dist
from spmdguard import rank_local, run, stop_after, sync_should_stop


@rank_local(only="main")
def note(text):
    with open("progress.txt", "a") as f:
        f.write(text + "\n")


def epoch(weights, steps):
    for _ in range(steps):
        grad = weights - torch.randn_like(weights)
        dist.all_reduce(grad)
        weights -= 0.01 * grad
        if sync_should_stop():
            return True
    return False


@run()
def main():
    dist.init_process_group("gloo")
    weights = torch.zeros(5)
    with stop_after(600):
        for number in range(4):
            if epoch(weights, steps=10):
                break
            note(f"epoch {number}: {weights.norm().item():.4f}")


if __name__ == "__main__":
    main()
