"""Train a sharded model (FSDP2), save it with torch.distributed.checkpoint, and go on where the last run ended.

    torchrun --nproc-per-node 2 docs/examples/checkpoint_dcp.py --steps 6
    torchrun --nproc-per-node 2 docs/examples/checkpoint_dcp.py --steps 12
    torchrun --nproc-per-node 2 docs/examples/checkpoint_dcp.py --steps 18 --fail-metadata-at 15

The second run finds the checkpoint of step 6 and goes on from there; kill the first one with -9 at any instant,
and the second goes on from the last checkpoint that was complete. In the third run the main rank cannot write
the metadata of step 15: no rank takes that checkpoint for complete, both ranks stop together after the step,
and rank 0 ends with the error. The checkpoint of step 12 is still there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import spmdguard


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "checkpoint_example")
    parser.add_argument(
        "--fail-metadata-at", type=int, default=0, help="step whose metadata cannot be written"
    )
    return parser.parse_args()


def make_model() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def collect_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state}


@spmdguard.collective
def resume(model: nn.Module, optimizer: torch.optim.Optimizer, output: Path) -> int:
    """Load the newest complete checkpoint, the same on every rank; the step to go on from."""
    checkpoint = spmdguard.latest_checkpoint(output)
    if checkpoint is None:
        return 0
    state = collect_state(model, optimizer)
    dcp.load(state, checkpoint_id=checkpoint)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return int(json.loads((checkpoint / "training.json").read_text())["step"])


def save(
    model: nn.Module, optimizer: torch.optim.Optimizer, step: int, arguments: argparse.Namespace
) -> Path | None:
    """The four phases; only ``save_state`` runs on every rank and communicates."""

    def write_metadata(path: Path) -> None:
        if step == arguments.fail_metadata_at:
            raise OSError("no space left on device")
        (path / "training.json").write_text(json.dumps({"step": step}))

    return spmdguard.save_checkpoint(
        arguments.output,
        step=step,
        save_state=lambda path: dcp.save(collect_state(model, optimizer), checkpoint_id=path),
        write_metadata=write_metadata,
        keep_last=2,
    )


@spmdguard.collective
def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Forward, backward and update: what all ranks do together."""
    torch.manual_seed(1000 * step + dist.get_rank())
    inputs = torch.randn(8, 16)
    optimizer.zero_grad()
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()


def train(arguments: argparse.Namespace) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model, optimizer = make_model()
    first = resume(model, optimizer, arguments.output)
    print(f"rank {rank}: going on from step {first}", flush=True)
    for step in range(first + 1, arguments.steps + 1):
        train_step(model, optimizer, step)
        if step % arguments.save_every == 0:
            saved = save(model, optimizer, step, arguments)
            print(f"rank {rank}: step {step} saved: {saved and saved.name}", flush=True)
        if spmdguard.sync_should_stop():
            print(f"rank {rank}: stopping after step {step}: {spmdguard.stop_reason()}", flush=True)
            break


if __name__ == "__main__":
    given = parse_arguments()
    spmdguard.run(lambda: train(given), exit_process=True)
