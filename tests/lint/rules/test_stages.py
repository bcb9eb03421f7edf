"""Groups that are made where a stage of the model has parts of a kind: all ranks make them, also without."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG106", "SPG305")
PROGRAM = """
        from functools import lru_cache

        import torch
        import torch.distributed as dist
        {library}

        @lru_cache(maxsize=None)
        def group_of(kind, width):
            mine = None
            for start in range(0, dist.get_world_size(), width):
                group = dist.new_group(list(range(start, start + width)))
                if start <= dist.get_rank() < start + width:
                    mine = group
            return mine

        def split(model):
            dense, expert = [], []
            for p in model.parameters():
                if p.requires_grad:
                    (dense if getattr(p, "allreduce", True) else expert).append(p)
            return dense, expert

        def by_helper(model, width):
            dense, expert = split(model)
            if expert:
                return group_of("expert", width){found}

        def listed(model, width):
            expert = [n for n, p in model.named_parameters() if "expert" in n]
            if len(expert) > 0:
                dist.new_group(list(range(width))){found}

        class Optimizer:
            def __init__(self, model: torch.nn.Module):
                self.routers = []
                for module in model.modules():
                    if hasattr(module, "router"):
                        self.routers.append(module)
                if not self.routers:
                    return{left}
                self.group = dist.new_group([0, 1])

        def reduces_what_it_has(model, group):
            dense, expert = split(model)
            if expert:
                for p in expert:
                    dist.all_reduce(p.grad, group=group)

        def by_setting(model, config, width):
            dense, expert = split(model)
            if config.num_experts:
                group_of("expert", width)
            return dense, expert

        def before(model, width):
            group = group_of("expert", width)
            dense, expert = split(model)
            return (expert, group) if expert else None
"""
LIBRARIES = (
    "from megatron.core import parallel_state",
    "from deepspeed.pipe import PipelineModule",
    "from torch.distributed.pipelining import PipelineStage",
)


def test_groups_by_what_a_stage_holds() -> None:
    """Lists from a helper, a comprehension and a field, in an arm and past a return; models cut in every way."""
    for library in LIBRARIES:
        assert agree(PROGRAM.format(library=library, found="  # SPG305", left="  # SPG102"), *RULES)


def test_groups_of_a_whole_model() -> None:
    """Where nothing tells of stages every rank holds the same parameters."""
    assert agree(PROGRAM.format(library="", found="", left=""), *RULES)
