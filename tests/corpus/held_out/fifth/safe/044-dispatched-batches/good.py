from typing import Iterator, Optional

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, broadcast_object_list
from torch.utils.data import DataLoader, IterableDataset


class LineStream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self) -> Iterator[torch.Tensor]:
        for i in range(self.n):
            yield torch.full((16,), float(i))


class MainProcessFeed:
    """The main process reads one global batch; each process gets its slice of it."""

    def __init__(self, accelerator: Accelerator, loader: DataLoader, drop_last: bool):
        self.acc, self.loader, self.drop_last = accelerator, loader, drop_last

    def _send(self, batch: Optional[torch.Tensor]):
        info = [None if batch is None else tuple(batch.shape)]
        broadcast_object_list(info)
        return info[0]

    def _join(self, parts):
        whole = torch.cat(parts)
        short = -len(whole) % self.acc.num_processes
        return torch.cat([whole, whole[-1:].expand(short, -1)]) if short else whole

    def __iter__(self):
        acc, world = self.acc, self.acc.num_processes
        it = iter(self.loader) if acc.is_main_process else None
        held, stop = None, False
        while not stop:
            parts = []
            if acc.is_main_process:
                try:
                    for _ in range(world):
                        parts.append(next(it))
                    held = self._join(parts)
                except StopIteration:
                    held = None
            shape = self._send(held)
            if shape is None:
                stop = True
                if self.drop_last:
                    return
                if acc.is_main_process and parts:
                    held = self._join(parts)
                shape = self._send(held)
                if shape is None:
                    return
            if acc.is_main_process:
                data = held.to(acc.device)
            else:
                data = torch.empty(shape, device=acc.device)
            data = broadcast(data)
            yield data.chunk(world)[acc.process_index]


def main():
    acc = Accelerator()
    feed = MainProcessFeed(acc, DataLoader(LineStream(1003), batch_size=8), drop_last=False)
    model = torch.nn.Linear(16, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-6)
    model, opt = acc.prepare(model, opt)
    for batch in feed:
        loss = model(batch).square().mean()
        acc.backward(loss)
        opt.step()
        opt.zero_grad()
    acc.print("done")
    acc.end_training()


if __name__ == "__main__":
    main()
