"""Loops that end when this rank has kept enough of what it made of its own batches."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG303", "SPG305", "SPG401", "SPG402")


def test_what_is_made_of_this_ranks_batches() -> None:
    """Behind ``**batch``, and drawn from an endless iterator: answers are kept until there are enough of them."""
    assert agree(
        """
        from itertools import cycle, islice
        import torch.distributed as dist
        from accelerate import Accelerator
        from torch.utils.data import DataLoader

        def collect(accelerator, policy, tokenizer, prompts, need):
            kept = []
            while len(kept) < need:
                batch = next(prompts)
                texts = tokenizer.batch_decode(policy.generate(**batch))
                texts = [text for text in texts if text.strip()]
                accelerator.gather(policy.count(texts))  # SPG402
                kept.extend(zip(texts, texts))
            return kept

        def train(policy, tokenizer, loader, rounds):
            accelerator = Accelerator()
            policy, loader = accelerator.prepare(policy, loader)
            prompts = cycle(loader)
            for _ in range(rounds):
                collect(accelerator, policy, tokenizer, prompts, need=128)

        def sliced(policy, loader: DataLoader, need):
            kept = []
            for batch in islice(loader, 10):
                kept.extend(row for row in policy(**batch) if row > 0)
                dist.barrier()
                if len(kept) >= need:
                    break  # SPG102

        def asked(policy, loader: DataLoader):
            for batch in loader:
                if policy.score(**batch) > 3:
                    dist.barrier()  # SPG305
        """,
        *CODES,
    )


def test_what_all_ranks_agree_on() -> None:
    """The shortest list of all ranks decides, as many are kept in each round, settings are the same everywhere."""
    assert agree(
        """
        from itertools import cycle
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def short(kept, need):
            have = torch.tensor([len(kept)])
            dist.all_reduce(have, op=dist.ReduceOp.MIN)
            return have.item() < need

        def agreed(policy, loader: DataLoader, need):
            prompts, kept = cycle(loader), []
            while short(kept, need):
                kept.extend(row for row in policy(**next(prompts)) if row > 0)

        def settled(policy, config):
            if policy.score(**config) > 3:
                dist.barrier()

        def each(policy, loader: DataLoader, need):
            kept = []
            for batch in loader:
                kept.append(policy(**batch))
                dist.barrier()
                if len(kept) >= need:
                    break
        """,
        *CODES,
    )


def test_sizes_of_tensors_of_random_numbers() -> None:
    """They grow alike on all ranks, whatever the seed; what random numbers select does not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def sample(x, tokens, limit):
            while tokens.size(1) < limit:
                picked = torch.multinomial(torch.rand(3, 40), 1)
                tokens = torch.cat([tokens, picked], dim=1)
                dist.all_reduce(x)

        def own(x, tokens, limit):
            while tokens.sum() < limit:
                dist.all_reduce(x)  # SPG402
                tokens = tokens + torch.rand(3, 1)

        def selected(x, rows):
            fresh = rows[rows > 0.5]
            if fresh.numel() == 0:
                return  # SPG102
            dist.all_reduce(x)

        def sized(x):
            torch.manual_seed(dist.get_rank())
            if torch.zeros(int(torch.randint(1, 9, (1,)))).numel() > 3:
                dist.all_reduce(x)  # SPG101

        def main(x):
            torch.manual_seed(dist.get_rank())
            sample(x, torch.randint(2, 40, (3, 1)), 30)
            own(x, torch.rand(3, 1), 30)
            selected(x, torch.rand(3))
        """,
        *CODES,
    )
