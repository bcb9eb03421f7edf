"""Pipeline schedules of Megatron: every stage takes part in each."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104", "SPG305")
PROGRAM = """
        import torch.distributed as dist
        from megatron.core import parallel_state as mpu
        from megatron.core.pipeline_parallel import get_forward_backward_func
        from megatron.core.pipeline_parallel.schedules import forward_backward_no_pipelining
        import megatron.core.pipeline_parallel as pipeline

        def last():
            return dist.get_rank() == dist.get_world_size() - 1

        def collect(step, data, model, func=None):
            schedule = get_forward_backward_func()
            if func is not None and {first}:
                schedule(forward_step_func=step, data_iterator=data, model=model, forward_only=True){found}

        def leaves(step, data, model):
            if not ({first}):
                return{left}
            run = pipeline.get_forward_backward_func()
            return run(forward_step_func=step, data_iterator=data, model=model)

        def by_name(step, data, model):
            if {first}:
                forward_backward_no_pipelining(forward_step_func=step, data_iterator=data, model=model){found}

        class Engine:
            def __init__(self, model):
                self.model, self.schedule = model, get_forward_backward_func()

            def evaluate(self, step, data):
                if {first}:
                    return self.schedule(forward_step_func=step, data_iterator=data, model=self.model){found}
"""


def test_a_schedule_on_some_ranks() -> None:
    """On the last rank, on the last stage, on one group rank; asked for in every way."""
    for first in ("last()", "dist.get_rank() == 0", "mpu.is_pipeline_last_stage()"):
        assert agree(PROGRAM.format(first=first, found="  # SPG101", left="  # SPG102"), *RULES)


def test_a_schedule_on_all_ranks() -> None:
    """Under a setting; and what one stage alone does with the result."""
    assert agree(PROGRAM.format(first="model.config.collect", found="", left=""), *RULES)
    assert agree(
        """
        from megatron.core import parallel_state as mpu
        from megatron.core.pipeline_parallel import get_forward_backward_func

        def evaluate(step, data, model, log):
            outputs = get_forward_backward_func()(forward_step_func=step, data_iterator=data, model=model)
            if mpu.is_pipeline_last_stage():
                log(outputs)
        """,
        *RULES,
    )
