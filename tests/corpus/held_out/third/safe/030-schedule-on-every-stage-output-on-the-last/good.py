from datetime import timedelta

import torch
import torch.distributed as dist


class Stage:
    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def forward(self, batch):
        outputs = []
        for x in batch:
            if self.rank > 0:
                x = torch.empty(3)
                dist.recv(x, src=self.rank - 1)
            x = x + 1
            if self.rank < self.world - 1:
                dist.send(x, dst=self.rank + 1)
            else:
                outputs.append(x)
        return outputs


def evaluate(stage, batches, process=None):
    loss = torch.zeros(1)
    for batch in batches:
        for out in stage.forward(batch):
            loss += out.mean()
    if process is not None:
        outputs = stage.forward(batches[0])
        if stage.rank == stage.world - 1:
            process(outputs)
    dist.all_reduce(loss)
    return loss.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    stage = Stage()
    seen = []
    batches = [[torch.zeros(3), torch.ones(3)], [torch.zeros(3)]]
    assert evaluate(stage, batches, process=seen.extend) == 3 * stage.world + 1
    assert len(seen) == (2 if stage.rank == stage.world - 1 else 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
