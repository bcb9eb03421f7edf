"""Lengths that ranks sum up: whoever does so expects each rank to have another number of items."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = (
    "SPG401",
    "SPG402",
)


def test_rounds_by_a_length_that_was_summed_up() -> None:
    """A loop over as many items, over the items themselves or over pieces of them, after their number was summed up."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        class Learner:
            def __init__(self, net, micro):
                self.net, self.micro = DDP(net), micro

            def update(self, rollout):
                total = torch.tensor(float(len(rollout["obs"])))
                dist.all_reduce(total)
                for lo in range(0, len(rollout["obs"]), self.micro):  # SPG401
                    self.net(rollout["obs"][lo : lo + self.micro])

            def listed(self, rollout, loss):
                stats = torch.tensor([loss, rollout.shape[0]])
                dist.all_reduce(stats, op=dist.ReduceOp.SUM)
                for lo in range(0, rollout.shape[0], self.micro):  # SPG401
                    self.net(rollout[lo : lo + self.micro])

            def pieces(self, rollout):
                total = torch.tensor(rollout.size(0))
                dist.all_reduce(total)
                for part in rollout.split(self.micro):  # SPG401
                    self.net(part)

            def given(self, rollout):
                size = len(rollout)
                total = torch.as_tensor(size, dtype=torch.long)
                dist.all_reduce(total)
                for index, item in enumerate(rollout):  # SPG401
                    self.net(item)
        """,
        *RULES,
    )


def test_lengths_that_tell_nothing() -> None:
    """Loops without a collective, agreed or checked lengths, the number of batches of a loader, and of parameters."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP


        class Fine:
            def __init__(self, net, micro):
                self.net, self.micro = DDP(net), micro

            def behind(self, rollout):
                total = torch.tensor(float(len(rollout["obs"])))
                dist.all_reduce(total)
                for lo in range(0, len(rollout["obs"]), self.micro):
                    total = total + lo
                dist.barrier()

            def agreed(self, rollout):
                most = torch.tensor(len(rollout))
                dist.all_reduce(most, op=dist.ReduceOp.MAX)
                for index in range(int(most.item())):
                    self.net(rollout[min(index, len(rollout) - 1)])

            def checked(self, rollout):
                least = torch.tensor(len(rollout))
                dist.all_reduce(least, op=dist.ReduceOp.MIN)
                assert least.item() == len(rollout)
                for item in rollout:
                    self.net(item)

            def batches(self, loader):
                number = torch.tensor(len(loader))
                dist.all_reduce(number)
                for batch in loader:
                    self.net(batch)

            def summed(self, rollout):
                total = torch.tensor(len(rollout))
                dist.all_reduce(total)
                for index in range(int(total.item())):
                    self.net(rollout[index % len(rollout)])

            def parameters(self):
                number = torch.tensor(len(list(self.net.parameters())))
                dist.all_reduce(number)
                for p in self.net.parameters():
                    dist.all_reduce(p.grad)
        """,
        *RULES,
    )
