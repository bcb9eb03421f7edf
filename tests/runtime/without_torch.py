"""A whole life without torch: run by ``test_without_torch.py`` in a process that cannot import it."""

from __future__ import annotations

import sys

import spmdguard


class Forbidden:
    """Makes ``import torch`` fail, as on a machine without it."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.split(".")[0] in ("torch", "numpy"):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Forbidden())  # type: ignore[arg-type]  # enough of a finder


@spmdguard.rank_local(only="main")
def upload(step: int) -> None:
    if step == 3:
        raise OSError("upload")


@spmdguard.collective
def step_together(step: int) -> int:
    return step


def train() -> None:
    for step in range(1, 10):
        step_together(step)
        upload(step)
        if spmdguard.sync_should_stop(overlap=step > 100):
            break
    with spmdguard.main_process_first():
        print("first")
    with spmdguard.deferring("block"):
        raise KeyError("later")
    spmdguard.barrier("end")
    print("left in step", step, spmdguard.stop_reason())


try:
    spmdguard.run(train, post_train=lambda: print("post_train"))
except OSError as error:
    print("raised", error)
print("main", spmdguard.is_main_process(), "torch" in sys.modules)
spmdguard.destroy_process_group()
