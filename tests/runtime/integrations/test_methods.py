"""What the adapters do to objects: classified methods, guarded forward passes; with real objects where there are."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import spmdguard
from spmdguard.integrations.methods import classify_methods, guard_forward
from spmdguard.latch import latch

torch = pytest.importorskip("torch")


class Tool:
    """An object of a framework."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def gather(self, fails: bool = False) -> str:
        self.calls.append("gather")
        if fails:
            raise ValueError("gather")
        return "gathered"

    def log(self) -> None:
        self.calls.append("log")
        raise OSError("server")


def guarded() -> Tool:
    tool = Tool()
    for _ in range(2):
        classify_methods(tool, collectives=["gather", "absent"], rank_locals=["log"], prefix="tool")
    return tool


def test_methods_are_classified_once() -> None:
    """Doing it twice wraps once; names that are absent stay so; other objects of the class are as before."""
    tool = guarded()
    assert (tool.gather(), latch().num_begun, tool.log(), hasattr(tool, "absent")) == (
        "gathered",
        1,
        None,
        False,
    )
    assert str(spmdguard.deferred_error()) == "server"
    with pytest.raises(OSError, match="server"):
        Tool().log()


def test_a_failed_method_closes_the_latch() -> None:
    """Its error leaves unchanged, and every later one is refused with the first failure."""
    tool = guarded()
    with pytest.raises(ValueError, match="gather") as raised:
        tool.gather(fails=True)
    assert "collective 'tool.gather'" in raised.value.__notes__[0]
    with pytest.raises(spmdguard.CommunicationBroken, match=r"tool\.gather was refused"):
        tool.gather()
    assert tool.calls == ["gather"]


class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is imported at run time
    def forward(self, value: Any, fails: bool = False) -> Any:
        assert spmdguard.region.thread.collectives == ["forward"]
        if fails:
            raise ValueError("shape")
        return value


def test_forward_passes_are_guarded_and_survive_copies() -> None:
    """Each pass counts; a copy runs its own; a failure closes the latch and leaves nothing open."""
    layer = guard_forward(guard_forward(Layer(), "forward"), "forward")
    twin = copy.deepcopy(layer)
    assert (layer(1), twin(2), latch().num_begun) == (1, 2, 2)
    with pytest.raises(ValueError, match="shape"):
        twin(3, fails=True)
    assert spmdguard.region.thread.collectives == []
    with pytest.raises(spmdguard.CommunicationBroken, match="forward was refused"):
        layer(4)
    assert spmdguard.region.thread.collectives == []


def test_accelerator_is_guarded() -> None:
    """`wait_for_everyone`, `backward` and the prepared model's passes count; a tracker's error is deferred."""
    accelerate = pytest.importorskip("accelerate")
    from spmdguard.integrations.accelerate import guard_accelerator

    accelerator = guard_accelerator(guard_accelerator(accelerate.Accelerator(cpu=True)))
    model, optimizer = torch.nn.Linear(2, 1), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    begun = latch().num_begun
    accelerator.wait_for_everyone()
    accelerator.backward(model(torch.ones(1, 2)).sum())
    accelerator.gather(torch.ones(1))
    assert latch().num_begun == begun + 4

    def broken(*args: Any, **kwargs: Any) -> None:
        raise OSError("server")

    accelerator.trackers = [type("Tracker", (), {"name": "x", "log": broken})()]
    accelerator.log({"loss": 1.0}, step=1)
    assert str(spmdguard.deferred_error()) == "server"


def test_lightning_agrees_between_optimizer_steps_only() -> None:
    """Accumulated micro-batches share a step: one agreement for them; the wish reaches the trainer."""
    pytest.importorskip("lightning")
    from spmdguard.integrations.lightning import SpmdguardCallback

    class Trainer:
        global_step = 0
        should_stop = False

    callback, trainer = SpmdguardCallback(), Trainer()
    for step in (1, 1, 1, 2):
        trainer.global_step = step
        callback.on_train_batch_end(trainer, None, None, None, 0)
    assert trainer.should_stop is False
    spmdguard.try_or_defer(int, "x")
    callback.on_train_batch_end(trainer, None, None, None, 0)
    assert trainer.should_stop is False
    trainer.global_step = 3
    callback.on_train_batch_end(trainer, None, None, None, 0)
    assert trainer.should_stop is True
    callback.on_exception(trainer, None, ValueError("lost"))
    with pytest.raises(spmdguard.CommunicationBroken):
        spmdguard.barrier()


def test_fabric_is_guarded() -> None:
    """Its barrier and reductions count."""
    fabric_module = pytest.importorskip("lightning.fabric")
    from spmdguard.integrations.lightning import guard_fabric

    fabric = guard_fabric(fabric_module.Fabric(accelerator="cpu", devices=1))
    fabric.barrier()
    fabric.all_reduce(torch.ones(1))
    assert latch().num_begun == 2


@pytest.mark.parametrize("wrong", [0, -3])
def test_wrong_intervals_are_refused(wrong: int) -> None:
    """With the value, when the callback is made and not in the middle of training."""
    pytest.importorskip("transformers")
    from spmdguard.integrations.transformers import SpmdguardTrainerCallback

    with pytest.raises(ValueError, match=f"every_n_steps must be at least 1, got {wrong}"):
        SpmdguardTrainerCallback(every_n_steps=wrong)
