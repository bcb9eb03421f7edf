"""Flags that the hooks of callbacks may set, where one rank alone calls the hooks."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104")
IMPORTS = """
            from dataclasses import dataclass

            import torch.distributed as dist
            from accelerate import Accelerator
            from accelerate.utils import broadcast_object_list

            @dataclass
            class Control:
                should_save: bool = False
                should_stop: bool = False
                steps: int = 0
"""


def test_hooks_that_one_rank_calls() -> None:
    """A save, or an end, by a flag of the control object: in a function, a class, a helper, on the trainer itself."""
    assert agree(
        f"""{IMPORTS}
            def plain(callbacks, steps):
                control = Control()
                for step in range(steps):
                    if dist.get_rank() == 0:
                        for cb in callbacks:
                            cb.on_step_end(control, step)
                    if control.should_save:
                        dist.barrier()  # SPG101

            class Loop:
                def __init__(self, callbacks, handler):
                    self.acc, self.callbacks, self.handler = Accelerator(), callbacks, handler
                    self.control = Control()
                    self.stop_training = False

                def notify(self, step):
                    if not self.acc.is_main_process:
                        return
                    self.handler.on_evaluate(self.control, step=step)

                def run(self, steps, out):
                    for step in range(steps):
                        self.notify(step)
                        if self.control.should_stop:
                            break  # SPG102
                        self.acc.wait_for_everyone()

                def saves(self, out):
                    if self.acc.is_main_process:
                        self.handler.on_evaluate(self.control)
                    if self.control.should_save:
                        self.acc.save_state(out)  # SPG101

                def itself(self, steps):
                    for step in range(steps):
                        if dist.get_rank() == 0:
                            for callback in self.callbacks:
                                callback(self, step)
                        if self.stop_training:
                            break  # SPG102
                        dist.barrier()
            """,
        *RULES,
    )


def test_hooks_that_part_nobody() -> None:
    """Hooks on all ranks, flags that are shared afterwards, loggers, other fields, and other calls."""
    assert agree(
        f"""{IMPORTS}
            class Loop:
                def __init__(self, callbacks, loggers):
                    self.callbacks, self.loggers, self.control = callbacks, loggers, Control()

                def everywhere(self, step):
                    for cb in self.callbacks:
                        cb.on_step_end(self.control, step)
                    if self.control.should_save:
                        dist.barrier()

                def shared(self, step):
                    if dist.get_rank() == 0:
                        for cb in self.callbacks:
                            cb.on_step_end(self.control, step)
                    flag = [self.control.should_save]
                    broadcast_object_list(flag, from_process=0)
                    self.control.should_save = flag[0]
                    if self.control.should_save:
                        dist.barrier()

                def logged(self, step):
                    if dist.get_rank() == 0:
                        for logger in self.loggers:
                            logger.on_step_end(self.control, step)
                    if self.control.should_stop:
                        dist.barrier()

                def counted(self, step):
                    if dist.get_rank() == 0:
                        for cb in self.callbacks:
                            cb.on_step_end(self.control, step)
                    if self.control.steps > 3:
                        dist.barrier()

                def saved(self, writer):
                    if dist.get_rank() == 0:
                        writer.save(self.control)
                    if self.control.should_stop:
                        dist.barrier()
            """,
        *RULES,
    )
