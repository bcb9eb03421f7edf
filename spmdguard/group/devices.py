"""The accelerators that this process can see."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["count_devices", "default_device"]


def count_devices() -> int | None:
    """How many CUDA devices this process can see; None without CUDA. Creates no CUDA context."""
    return torch.cuda.device_count() if torch.cuda.is_available() else None


def default_device(local_rank: int, backend: str) -> Any:
    """The device that a local rank is bound to: its own CUDA device where the backend moves CUDA tensors."""
    num_devices = count_devices()
    if not num_devices or backend == "gloo":
        return torch.device("cpu")
    return torch.device("cuda", local_rank if local_rank < num_devices else 0)
