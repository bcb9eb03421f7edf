"""Real state: DDP and FSDP2 through torch.distributed.checkpoint, ``torch.save``, an engine of its own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import spmdguard

from .parts import say, start_gloo


class Application:
    """A model and its optimizer, wrapped for ``kind``, with one training step."""

    def __init__(self, kind: str, seed: int) -> None:
        torch.manual_seed(seed)
        model: Any = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        if kind == "fsdp2":
            fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
        else:
            model = DistributedDataParallel(model)
        self.model: Any = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(2, 16) * (1 + dist.get_rank())).sum().backward()
        self.optimizer.step()

    def state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load(self, path: Path) -> None:
        state = self.state()
        dcp.load(state, checkpoint_id=path)
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def numbers(self) -> list[torch.Tensor]:
        """Every tensor of this rank."""
        moments = [value for each in self.optimizer.state.values() for value in each.values()]
        tensors = [*self.model.parameters(), *moments]
        return [getattr(each, "to_local", lambda each=each: each)().detach().clone() for each in tensors]


def save_everything() -> None:
    """Every kind of state, one after the other, each in a directory of its own."""
    start_gloo(60)
    group = dist.new_group(backend="gloo")
    save_and_load("ddp", dcp.save, None)
    save_and_load("fsdp2", dcp.save, None)
    save_and_load("ddp", dcp.async_save, group)
    save_in_background(group)
    save_plainly()
    save_with_engine()
    spmdguard.destroy_process_group()


def save_and_load(kind: str, save: Any, group: Any) -> None:
    """Train two steps, save, train on; a fresh application loads and equals the one that was saved."""
    trained = Application(kind, seed=0)
    trained.step()
    trained.step()
    directory = f"{kind} {save.__name__}"
    saved = spmdguard.save_checkpoint(
        directory,
        step=2,
        save_state=lambda path: save(trained.state(), checkpoint_id=path, process_group=group),
        checksum=True,
    )
    expected = copy.deepcopy(trained.numbers())
    trained.step()
    found = spmdguard.latest_checkpoint(directory, checksum=True)
    assert found is not None and found == saved
    fresh = Application(kind, seed=1)
    fresh.step()
    assert not all(map(torch.equal, expected, fresh.numbers()))
    fresh.load(found)
    say(directory, len(expected) > 4 and all(map(torch.equal, expected, fresh.numbers())))
    dist.barrier()


def save_in_background(group: Any) -> None:
    """Training goes on, with collectives of its own, while the state of step 1 is written."""
    trained = Application("ddp", seed=0)
    trained.step()
    expected = copy.deepcopy(trained.numbers())
    pending = spmdguard.start_checkpoint(
        "background",
        step=1,
        save_state=lambda path: dcp.async_save(trained.state(), checkpoint_id=path, process_group=group),
    )
    for _ in range(20):
        trained.step()
        assert not spmdguard.sync_should_stop()
    assert spmdguard.latest_checkpoint("background") is None
    saved = pending.finish()
    assert saved is not None and saved == pending.finish() == spmdguard.latest_checkpoint("background")
    fresh = Application("ddp", seed=1)
    fresh.step()
    fresh.load(saved)
    say("background", all(map(torch.equal, expected, fresh.numbers())))


def save_plainly() -> None:
    """``torch.save`` on the main rank only."""
    model = DistributedDataParallel(nn.Linear(4, 4))

    @spmdguard.rank_local(only="main")
    def save(path: Path) -> None:
        torch.save(model.module.state_dict(), path / "model.pt")

    saved = spmdguard.save_checkpoint("plain", step=7, save_state=save)
    assert saved is not None
    loaded = torch.load(saved / "model.pt", weights_only=True)
    say("plain", torch.equal(loaded["weight"], model.module.weight), saved.name)


class Engine:
    """Saves as DeepSpeed does: a tagged folder, a shard of each rank, ``latest`` by the main rank."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()

    def save_checkpoint(self, save_dir: Path, tag: str, client_state: dict[str, Any]) -> bool:
        folder = Path(save_dir) / tag
        folder.mkdir(exist_ok=True)
        dist.barrier()
        if self.rank == 0:
            torch.save({"module": torch.ones(3), **client_state}, folder / "mp_rank_00_model_states.pt")
        torch.save(torch.full((2,), float(self.rank)), folder / f"zero_pp_rank_{self.rank}_optim_states.pt")
        dist.barrier()
        if self.rank == 0:
            (Path(save_dir) / "latest").write_text(tag)
        return True

    def load_checkpoint(self, load_dir: Path) -> tuple[Path, dict[str, Any]]:
        folder = load_dir / (load_dir / "latest").read_text()
        shard = torch.load(folder / f"zero_pp_rank_{self.rank}_optim_states.pt", weights_only=True)
        assert shard.tolist() == [self.rank, self.rank]
        return folder, torch.load(folder / "mp_rank_00_model_states.pt", weights_only=True)


def save_with_engine() -> None:
    engine = Engine()
    saved = spmdguard.save_checkpoint(
        "engine", step=3, save_state=lambda path: engine.save_checkpoint(path, "state", {"step": 3})
    )
    found = spmdguard.latest_checkpoint("engine")
    assert found is not None and found == saved
    folder, state = engine.load_checkpoint(found)
    say("engine", folder.name, state["step"])


def save_a_lot(num_megabytes: int, rounds: int) -> None:
    """Seconds of a bare DCP save, and of the helper around it with and without what it wraps, in turns."""
    import shutil
    import time

    rank = start_gloo(60)
    count = num_megabytes * 250_000 // 8
    state = {f"tensor{index}": torch.full((count,), float(index)) for index in range(8)}
    inner_s = 0.0

    def save_state(path: Path) -> None:
        nonlocal inner_s
        started_s = time.perf_counter()
        dcp.save(state, checkpoint_id=path)
        dist.barrier()
        inner_s = time.perf_counter() - started_s

    for turn in range(rounds):
        for how in ("bare", "helper") if turn % 2 else ("helper", "bare"):
            path = Path(f"{how}{turn}")
            dist.barrier()
            started_s = time.perf_counter()
            if how == "bare":
                save_state(path)
            else:
                spmdguard.save_checkpoint(path, step=1, save_state=save_state)
            total_s = time.perf_counter() - started_s
            dist.barrier()
            if rank == 0:
                say(how, total_s, total_s - inner_s)
                shutil.rmtree(path)
    spmdguard.destroy_process_group()


def run_example(script: str, arguments: list[str]) -> None:
    """A file of docs/examples, as its command line runs it."""
    import runpy
    import sys

    torch.set_num_threads(1)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
