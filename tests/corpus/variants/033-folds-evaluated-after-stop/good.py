"""Cross-validation over five folds."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import deferred_error, deferring, raise_if_deferred_error, sync_should_stop


class Fold:
    def __init__(self, number: int):
        self.rows = torch.randn(40, 5, generator=torch.Generator().manual_seed(number))
        self.weight = torch.zeros(5)

    def batches(self):
        yield from self.rows.split(8)

    def step(self, batch: torch.Tensor) -> float:
        error = batch @ self.weight - batch.sum(dim=1)
        slope = batch.T @ error
        dist.all_reduce(slope)
        self.weight -= 0.01 * slope
        return error.square().mean().item()

    def evaluate(self) -> float:
        score = (self.rows @ self.weight).std().reshape(1)
        dist.all_reduce(score)
        return score.item()


def validate(num_folds: int) -> list[float]:
    scores = []
    for number in range(num_folds):
        fold = Fold(number)
        for batch in fold.batches():
            loss = fold.step(batch)
            with deferring("loss file"):
                with open(f"loss-{dist.get_rank()}.txt", "a") as out:
                    out.write(f"{number} {loss}\n")
            if sync_should_stop(deferred_error() is not None):
                break
        if sync_should_stop(deferred_error() is not None):
            break
        scores.append(fold.evaluate())
    return scores


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    scores = validate(5)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print(scores)


if __name__ == "__main__":
    main()
