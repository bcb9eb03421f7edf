"""Numbers of rounds that are computed from the masks and lengths of a batch: every rank has its own."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PROGRAM = """
        import math

        import torch
        import torch.distributed as dist
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

        def cut(batch, most, group=None):
            lengths = batch["attention_mask"].sum(dim=-1).tolist()
            count = max(1, math.ceil(sum(lengths) / most))
            if group is not None:
                wanted = torch.tensor([count])
                dist.all_reduce(wanted, op=dist.ReduceOp.MAX, group=group)
                count = int(wanted.item())
            return [batch["input_ids"][m::count] for m in range(count)]

        class Actor:
            def __init__(self, model, group):
                self.model, self.group = FSDP(model), group

            def forgets(self, batches):
                for batch in batches:
                    for part in cut(batch, 1024):  # SPG401
                        self.model(part)

            def agrees(self, batches):
                for batch in batches:
                    for part in cut(batch, 1024, group=self.group):
                        self.model(part)

            def counted(self, data, most):
                tokens = int(data["num_tokens"].sum().item())
                for index in range(tokens // most + 1):  # SPG401
                    self.model(data["input_ids"][index])

            def longest(self, data):
                steps = data["seq_lens"].max().item() if data["seq_lens"] is not None else 1
                for index in range(steps):  # SPG401
                    self.model(data["input_ids"][:, index])

            def by_shape(self, data, most):
                for index in range(data["input_ids"].shape[0] // most):
                    self.model(data["input_ids"][index])
                for index in range(len(data["attention_mask"])):
                    self.model(data["input_ids"][index])

            def by_setting(self, data, config):
                for index in range(config["num_rounds"]):
                    self.model(data["input_ids"][index])
                for index in range(math.ceil(config["batch_size"] / config["micro_batch_size"])):
                    self.model(data["input_ids"][index])

                for index in range(config["max_tokens"] // config["seq_len"]):
                    self.model(data["input_ids"][index])
                for index in range(config.max_len // 8 + max(config.tokens, 1)):
                    self.model(data["input_ids"][index])

            def by_attribute(self, data):
                for index in range(int(data.attention_mask.sum(-1).max())):  # SPG401
                    self.model(data.input_ids[:, index])

            def reduced(self, data):
                count = data["attention_mask"].sum()
                dist.all_reduce(count, op=dist.ReduceOp.MAX)
                for index in range(int(count.item())):
                    self.model(data["input_ids"][index])

            def alone(self, data):
                total = 0
                for index in range(int(data["attention_mask"].sum().item())):
                    total += data["input_ids"][index]
                return self.model(total)
"""


def test_rounds_by_batch() -> None:
    """Micro batches by tokens, forgotten to agree on; shapes and settings are the same everywhere."""
    assert agree(PROGRAM, "SPG401")
