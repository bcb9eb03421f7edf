"""SPG109: all ranks send before any receives."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_all_ranks_send_first() -> None:
    """Pairs and rings, in place and behind an object's fields."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def pairs(x, out):
            peer = dist.get_rank() ^ 1
            dist.send(x, dst=peer)  # SPG109
            dist.recv(out, src=peer)

        def ring(x, out):
            rank, world = dist.get_rank(), dist.get_world_size()
            dist.send(x, (rank + 1) % world)  # SPG109
            dist.recv(out, (rank - 1) % world)

        class Swap:
            def __init__(self):
                self.peer = dist.get_rank() ^ 1

            def __call__(self, x):
                out = torch.empty_like(x)
                dist.send(x, dst=self.peer)  # SPG109
                dist.recv(out, src=self.peer)
                return out
        """,
        "SPG109",
    )


def test_somebody_receives_first() -> None:
    """Even and odd ranks in turn, a chain, handles, and a batch are right."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def in_turn(x, out):
            rank = dist.get_rank()
            peer = rank ^ 1
            if rank % 2 == 0:
                dist.send(x, dst=peer)
                dist.recv(out, src=peer)
            else:
                dist.recv(out, src=peer)
                dist.send(x, dst=peer)

        def chain(x, out):
            rank, world = dist.get_rank(), dist.get_world_size()
            if rank < world - 1:
                dist.send(x, rank + 1)
            if rank > 0:
                dist.recv(out, rank - 1)

        def with_handle(x, out):
            peer = dist.get_rank() ^ 1
            work = dist.isend(x, dst=peer)
            dist.recv(out, src=peer)
            work.wait()

        def received_before(x, out):
            peer = dist.get_rank() ^ 1
            work = dist.irecv(out, src=peer)
            dist.send(x, dst=peer)
            work.wait()

        def to_one(x, out):
            if dist.get_rank() == 0:
                dist.recv(out, src=1)
            elif dist.get_rank() == 1:
                dist.send(x, dst=0)
        """,
        "SPG109",
    )


def test_some_ranks_send_first() -> None:
    """Two named ranks, neighbours in a line, and a barrier between send and receive."""
    assert agree(
        """
        import torch.distributed as dist

        def two(x, out):
            if dist.get_rank() == 0:
                dist.send(x, dst=1)  # SPG109
                dist.recv(out, src=1)
            elif dist.get_rank() == 1:
                dist.send(x, dst=0)
                dist.recv(out, src=0)

        def line(x, left, right):
            rank, world = dist.get_rank(), dist.get_world_size()
            if rank > 0:
                dist.send(x, rank - 1)
            if rank < world - 1:
                dist.send(x, rank + 1)  # SPG109
            if rank > 0:
                dist.recv(left, rank - 1)
            if rank < world - 1:
                dist.recv(right, rank + 1)

        def barrier(x):
            if dist.get_rank() == 0:
                dist.send(x, dst=1)  # SPG109
                dist.barrier()
            else:
                dist.barrier()
                if dist.get_rank() == 1:
                    dist.recv(x, src=0)
        """,
        "SPG109",
    )


def test_programs_for_one_number_of_ranks() -> None:
    """A partner that exists in a job of two alone, said by an assertion or by the number; a job of four at least."""
    assert agree(
        """
        import torch
        import torch.distributed as dist


        def swap(x, peer):
            other = torch.empty_like(x)
            dist.send(x, dst=peer)  # SPG109
            dist.recv(other, src=peer)
            return other


        def main(x):
            assert dist.get_world_size() == 2
            swap(x, 1 - dist.get_rank())


        def two(x):
            peer = 1 - dist.get_rank()
            y = torch.empty_like(x)
            dist.send(x, dst=peer)  # SPG109
            dist.recv(y, src=peer)


        def receives(x):
            if dist.get_world_size() != 2:
                raise ValueError
            peer = 1 - dist.get_rank()
            y = torch.empty_like(x)
            dist.recv(y, src=peer)  # SPG110
            dist.send(x, dst=peer)


        def table(x):
            peer = {0: 1, 1: 0}[dist.get_rank()]
            y = torch.empty_like(x)
            dist.send(x, dst=peer)  # SPG109
            dist.recv(y, src=peer)


        def ok(x):
            peer = 1 - dist.get_rank()
            y = torch.empty_like(x)
            if dist.get_rank() == 0:
                dist.send(x, dst=peer)
                dist.recv(y, src=peer)
            else:
                dist.recv(y, src=peer)
                dist.send(x, dst=peer)


        def four(x):
            assert dist.get_world_size() >= 4
            peer = (dist.get_rank() + 2) % dist.get_world_size()
            y = torch.empty_like(x)
            dist.send(x, dst=peer)  # SPG109
            dist.recv(y, src=peer)
        """,
        "SPG109",
        "SPG110",
    )


def test_received_before_a_collective_with_a_root() -> None:
    """A rank that receives before a collective, behind which alone its root sends; sent before, all is well."""
    assert agree(
        """
        import torch.distributed as dist

        def broadcast(x, token):
            if dist.get_rank() == 1:
                dist.recv(token, src=0)  # SPG109
            dist.broadcast(x, src=0)
            if dist.get_rank() == 0:
                dist.send(token, dst=1)

        def scatter(x, parts, token):
            me = dist.get_rank()
            if me == 0:
                dist.scatter(x, parts, src=0)
                dist.send(token, dst=1)
            else:
                if me == 1:
                    dist.recv(token, src=0)  # SPG109
                dist.scatter(x, src=0)

        def reduced_behind(x, token):
            if dist.get_rank() == 0:
                dist.recv(token, src=1)  # SPG109
            dist.reduce(x, dst=0)
            if dist.get_rank() == 1:
                dist.send(token, dst=0)

        def sent_before(x, token):
            if dist.get_rank() == 0:
                dist.send(token, dst=1)
            elif dist.get_rank() == 1:
                dist.recv(token, src=0)
            dist.broadcast(x, src=0)

        def both_behind(x, token):
            dist.broadcast(x, src=0)
            if dist.get_rank() == 1:
                dist.recv(token, src=0)
            if dist.get_rank() == 0:
                dist.send(token, dst=1)

        def in_flight(x, token):
            if dist.get_rank() == 1:
                work = dist.irecv(token, src=0)
            dist.broadcast(x, src=0)
            if dist.get_rank() == 0:
                dist.send(token, dst=1)
            elif dist.get_rank() == 1:
                work.wait()
        """,
        "SPG109",
        "SPG110",
    )


def test_received_before_all_are_waited_for() -> None:
    """A root that gathers waits for all, whatever the size: its sender comes to no send before."""
    assert agree(
        """
        import torch.distributed as dist

        def gathered(x, parts, token):
            if dist.get_rank() == 1:
                dist.recv(token, src=0)  # SPG110
            if dist.get_rank() == 0:
                dist.gather(x, parts, dst=0)
                dist.send(token, dst=1)
            else:
                dist.gather(x, dst=0)
        """,
        "SPG109",
        "SPG110",
    )
