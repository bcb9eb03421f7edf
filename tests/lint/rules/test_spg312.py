"""SPG312: gradient norms over the shards of one rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_wrapped_in_the_function_itself() -> None:
    """Torch's function on the parameters of a wrapped module, by each of its names."""
    for call, imported in (
        ("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", ""),
        ("clip_grad_norm_(model.parameters(), max_norm=1.0)", "from torch.nn.utils import clip_grad_norm_"),
        ("clip.clip_grad_norm_(model.parameters(), 1.0)", "import torch.nn.utils.clip_grad as clip"),
        ("norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "from torch import nn"),
    ):
        assert agree(
            f"""
            import torch
            {imported}
            from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

            def train(net, batches):
                model = FSDP(net, use_orig_params=True)
                optimizer = torch.optim.AdamW(model.parameters())
                for batch in batches:
                    model(batch).mean().backward()
                    {call}  # SPG312
                    optimizer.step()
            """,
            "SPG312",
        )


def test_wrapped_elsewhere() -> None:
    """A module kept in an attribute, made by a helper, or whose parameters are handed to one."""
    assert agree(
        """
        import torch
        from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

        def build(net):
            return FullyShardedDataParallel(net, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)

        def clip(parameters, limit):
            return torch.nn.utils.clip_grad_norm_(parameters, limit)  # SPG312

        class Trainer:
            def __init__(self, net):
                self.model = build(net)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def step(self, batch):
                self.model(batch).mean().backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # SPG312
                self.optimizer.step()

        def train(net, batch):
            model = build(net)
            model(batch).mean().backward()
            clip(model.parameters(), 1.0)
        """,
        "SPG312",
    )


def test_right_norms() -> None:
    """The wrapper's method, DTensors, data parallel modules, whole parameters, code that asks what the module is."""
    assert agree(
        """
        import torch
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.distributed.fsdp import ShardingStrategy, fully_shard
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.nn.utils import clip_grad_norm_

        def own_method(net, batch):
            model = FSDP(net)
            model(batch).mean().backward()
            model.clip_grad_norm_(1.0)

        def second_generation(net, batch):
            fully_shard(net)
            net(batch).mean().backward()
            clip_grad_norm_(net.parameters(), 1.0)

        def replicated(net, batch):
            model = DDP(net)
            model(batch).mean().backward()
            clip_grad_norm_(model.parameters(), 1.0)

        def whole(net, batch):
            model = FSDP(net, sharding_strategy=ShardingStrategy.NO_SHARD)
            model(batch).mean().backward()
            clip_grad_norm_(model.parameters(), 1.0)

        def asking(net, batch):
            model = FSDP(net)
            model(batch).mean().backward()
            if isinstance(model, FSDP):
                model.clip_grad_norm_(1.0)
            else:
                clip_grad_norm_(model.parameters(), 1.0)

        def by_option(net, batch, sharded):
            model = FSDP(net) if sharded else DDP(net)
            model(batch).mean().backward()
            if sharded:
                model.clip_grad_norm_(1.0)
            else:
                clip_grad_norm_(model.parameters(), 1.0)

        def values(net, batch):
            model = FSDP(net)
            model(batch).mean().backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        """,
        "SPG312",
    )


def test_strategy_of_a_variable() -> None:
    """A strategy that an argument gives may be the one with whole parameters, where the file knows that one."""
    for strategies, mark in (("FULL_SHARD", "  # SPG312"), ("NO_SHARD", "")):
        assert agree(
            f"""
            from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
            from torch.nn.utils import clip_grad_norm_

            CHOICES = {{"it": ShardingStrategy.{strategies}}}

            def train(net, batch, strategy):
                model = FSDP(net, sharding_strategy=CHOICES[strategy])
                model(batch).mean().backward()
                clip_grad_norm_(model.parameters(), 1.0){mark}
            """,
            "SPG312",
        )


def test_known_limits() -> None:
    """Parameters collected in a list before are not seen."""
    assert agree(
        """
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.nn.utils import clip_grad_norm_

        def train(net, batch):
            model = FSDP(net)
            chosen = [p for p in model.parameters() if p.requires_grad]
            model(batch).mean().backward()
            clip_grad_norm_(chosen, 1.0)
        """,
        "SPG312",
    )
