"""SPG107: the last piece of what one rank hands on, and the buffers of the others."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

START = """
        import math
        import torch
        import torch.distributed as dist
        import torch.nn.functional as F
        from torch.utils.data import DataLoader
"""


@pytest.mark.parametrize(
    "source",
    [
        """
        class Feed:
            def __init__(self, path, total, size):
                self.path, self.total, self.size, self.rank = path, total, size, dist.get_rank()

            def read(self):
                yield from torch.load(self.path).split(self.size)

            def __iter__(self):
                source = self.read() if self.rank == 0 else None
                for i in range(math.ceil(self.total / self.size)):
                    if self.rank == 0:
                        packed = next(source).float().cuda()
                    else:
                        packed = torch.empty(self.size, 40).cuda()
                    dist.broadcast(packed, src=0)  # SPG107
                    yield packed

        def run(path):
            for packed in Feed(path, 1_000_003, 512):
                print(packed.sum())
        """,
        """
        def sliced(path, n, size):
            data = torch.load(path) if dist.get_rank() == 0 else None
            for i in range(0, n, size):
                part = data[i : i + size] if dist.get_rank() == 0 else torch.zeros((size, 8))
                dist.broadcast(part, 0)  # SPG107
        """,
        """
        def by_loader(data, size):
            rows = iter(DataLoader(data, batch_size=size))
            for _ in range((len(data) + size - 1) // size):
                if dist.get_rank() == 0:
                    part = next(rows)
                else:
                    part = torch.empty(size, 8)
                dist.broadcast(part, 0)  # SPG107
        """,
        """
        def pieces(data, size):
            for piece in data.split(size):
                part = piece.cuda() if dist.get_rank() == 0 else torch.empty(size, 4).cuda()
                dist.broadcast(part, 0)  # SPG107
        """,
    ],
)
def test_a_smaller_last_piece(source: str) -> None:
    """Rounds that are rounded up, slices, batches of a loader, a split."""
    assert agree(START + source, "SPG107")


@pytest.mark.parametrize(
    "source",
    [
        """
        def told(path, n, size):
            data = torch.load(path) if dist.get_rank() == 0 else None
            for i in range(0, n, size):
                rows = torch.tensor([0])
                if dist.get_rank() == 0:
                    part = data[i : i + size]
                    rows = torch.tensor([len(part)])
                dist.broadcast(rows, 0)
                if dist.get_rank() != 0:
                    part = torch.zeros((int(rows.item()), 8))
                dist.broadcast(part, 0)
        """,
        """
        def padded(path, n, size):
            data = torch.load(path) if dist.get_rank() == 0 else None
            for i in range(0, n, size):
                if dist.get_rank() == 0:
                    part = data[i : i + size]
                    part = F.pad(part, (0, 0, 0, size - len(part)))
                else:
                    part = torch.zeros((size, 8))
                dist.broadcast(part, 0)
        """,
        """
        def whole_pieces(path, n, size):
            data = torch.load(path) if dist.get_rank() == 0 else None
            for i in range(0, n - n % size, size):
                part = data[i : i + size] if dist.get_rank() == 0 else torch.zeros((size, 8))
                dist.broadcast(part, 0)
        """,
        """
        def dropped(data, size):
            rows = iter(DataLoader(data, batch_size=size, drop_last=True))
            for _ in range(len(data) // size):
                part = next(rows) if dist.get_rank() == 0 else torch.empty(size, 8)
                dist.broadcast(part, 0)
        """,
        """
        def weights(model, path):
            state = torch.load(path) if dist.get_rank() == 0 else {}
            for name, parameter in model.named_parameters():
                value = state[name] if dist.get_rank() == 0 else torch.empty(parameter.shape)
                dist.broadcast(value, 0)
        """,
    ],
)
def test_pieces_of_one_size(source: str) -> None:
    """Sizes that are told first, padding, what is left over is taken off or dropped, weights by name."""
    assert agree(START + source, "SPG107")
