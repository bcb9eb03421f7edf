"""SPG110: loops over ranks, each round of which names another partner."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_some_partners_send_nothing() -> None:
    """The collector waits for each other rank, or a rank sends to each, and only some of them answer."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def odd_ones(x):
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            if rank == 0:
                for peer in range(1, size):
                    dist.recv(x, src=peer)  # SPG110
            elif rank % 2 == 1:
                dist.send(x, dst=0)

        class Collector:
            def __init__(self):
                dist.init_process_group("gloo")
                self.rank, self.size = dist.get_rank(), dist.get_world_size()

            def collect(self, x):
                if self.rank == self.size - 1:
                    for peer in range(self.size - 1):
                        dist.recv(x, src=peer, tag=peer)  # SPG110
                    return x
                if self.rank < self.size // 2:
                    dist.send(x, dst=self.size - 1, tag=self.rank)
                return None

        def main(x):
            Collector().collect(x)
            dist.barrier()

        def to_each(x):
            dist.init_process_group("gloo")
            if dist.get_rank() == 0:
                for peer in range(1, dist.get_world_size()):
                    dist.send(x, dst=peer)  # SPG110
            elif dist.get_rank() < 2:
                dist.recv(x, src=0)
        """,
        "SPG110",
    )


def test_all_partners_answer() -> None:
    """From each, to each, from every second one, between all pairs, and in numbers that nobody knows."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def from_each(x):
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            if rank == 0:
                for peer in range(1, size):
                    dist.recv(x, src=peer, tag=peer)
            else:
                dist.send(x, dst=0, tag=rank)

        def from_odd_ones(x):
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            if rank == 0:
                for peer in range(1, size, 2):
                    dist.recv(x, src=peer)
            elif rank % 2:
                dist.send(x, dst=0)

        def between_all(x):
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            works = []
            for peer in range(size):
                if peer != rank:
                    works.append(dist.isend(x, dst=peer))
            for peer in range(size):
                if peer != rank:
                    dist.recv(x, src=peer)
            for work in works:
                work.wait()

        def around(x):
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            for shift in range(1, size):
                work = dist.isend(x, dst=(rank + shift) % size)
                dist.recv(x, src=(rank - shift) % size)
                work.wait()

        def round_by_round(x, rounds):
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            for _ in range(rounds):
                if rank == 0:
                    for peer in range(1, size):
                        dist.recv(x, src=peer)
                else:
                    dist.send(x, dst=0)
        """,
        "SPG110",
    )
