"""SPG110: programs that are told how many ranks play which role, and check that they add up."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_roles_that_do_not_meet_in_every_number() -> None:
    """A sender with one partner, receivers that share senders; checked by ``assert`` and by a raise, as two objects."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Places:
            def __init__(self, senders, receivers):
                self.senders, self.receivers = senders, receivers

            def check(self):
                assert self.senders + self.receivers == dist.get_world_size()

        class Sender:
            def __init__(self, places):
                self.rank = dist.get_rank()
                self.to = [places.senders + self.rank] if self.rank < places.receivers else []

            def sync(self, tensors):
                for tensor in tensors:
                    for rank in self.to:
                        dist.send(tensor, dst=rank)

        class Receiver:
            def __init__(self, places):
                self.source = (dist.get_rank() - places.senders) % places.senders

            def sync(self, tensors):
                for tensor in tensors:
                    dist.recv(tensor, src=self.source)  # SPG110

        def main(tensors, senders, receivers, rounds):
            dist.init_process_group("nccl")
            places = Places(senders, receivers)
            places.check()
            worker = Sender(places) if dist.get_rank() < senders else Receiver(places)
            for _ in range(rounds):
                worker.sync(tensors)
                dist.barrier()

        def in_one(x, readers, writers):
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            if readers + writers != dist.get_world_size():
                raise ValueError("as many as there are")
            if rank < readers:
                dist.recv(x, src=readers + rank)
            else:
                dist.send(x, dst=rank - readers)  # SPG110
            dist.barrier()
        """,
        "SPG110",
    )


def test_roles_that_meet_in_every_number() -> None:
    """Each receiver has its sender, only equal numbers pass the checks, and numbers that nothing checks."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def from_one(x, senders, receivers):
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            assert senders + receivers == dist.get_world_size()
            if rank == 0:
                for other in range(senders, dist.get_world_size()):
                    dist.send(x, dst=other)
            elif rank >= senders:
                dist.recv(x, src=0)
            dist.barrier()

        def in_pairs(x, pairs):
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            assert 2 * pairs == dist.get_world_size()
            if rank < pairs:
                dist.recv(x, src=pairs + rank)
            else:
                dist.send(x, dst=rank - pairs)
            dist.barrier()

        def unchecked(x, readers):
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            if rank < readers:
                dist.recv(x, src=readers + rank)
            else:
                dist.send(x, dst=rank - readers)
            dist.barrier()

        def spread(tensors, senders, receivers):
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            assert senders + receivers == dist.get_world_size()
            for tensor in tensors:
                if rank < senders:
                    for other in range(rank, receivers, senders):
                        dist.send(tensor, dst=senders + other)
                else:
                    dist.recv(tensor, src=(rank - senders) % senders)
            dist.barrier()
        """,
        "SPG110",
    )
