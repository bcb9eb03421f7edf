"""What this process runs: its script, its arguments and the versions of what it builds on, without importing any."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["describe_arguments", "find_driver_version", "find_versions", "hash_script"]

_PER_RANK_ARGUMENTS = ("--local_rank", "--local-rank")
_NCCL_PACKAGES = ("nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-nccl-cu11")
_PACKAGES = ("torch", "numpy", "spmdguard", "accelerate", "lightning", "transformers", "deepspeed")
_DRIVER_FILE = Path("/proc/driver/nvidia/version")
_MAX_SCRIPT_BYTES = 16 * 2**20


def hash_script(argv: Sequence[str] | None = None) -> tuple[str, str]:
    """Path of the script as started, and a hash of its content; empty where there is no file."""
    arguments = sys.argv if argv is None else argv
    name = arguments[0] if arguments else ""
    if argv is None and not Path(name).is_file():
        name = getattr(sys.modules.get("__main__"), "__file__", None) or name
    try:
        path = Path(name)
        if not name or not path.is_file() or path.stat().st_size > _MAX_SCRIPT_BYTES:
            return name, ""
        return name, _short_hash(path.read_bytes())
    except OSError:
        return name, ""


def describe_arguments(argv: Sequence[str] | None = None) -> tuple[tuple[str, ...], str]:
    """Each argument as ``name=hash`` without its value, and a hash of all; per-rank arguments are left out."""
    arguments = list(sys.argv if argv is None else argv)[1:]
    kept: list[str] = []
    skip = False
    for argument in arguments:
        name = argument.split("=", 1)[0]
        if not skip and name not in _PER_RANK_ARGUMENTS:
            kept.append(argument)
        skip = not skip and argument in _PER_RANK_ARGUMENTS
    return tuple(_name_argument(kept, index) for index in range(len(kept))), _short_hash(
        "\0".join(kept).encode()
    )


def _name_argument(arguments: Sequence[str], index: int) -> str:
    """``--lr=0.1`` and the value after ``--lr`` are both called ``--lr``; others by their position."""
    argument = arguments[index]
    before = arguments[index - 1] if index else ""
    if argument.startswith("-"):
        name = argument.split("=", 1)[0]
    elif before.startswith("-") and "=" not in before:
        name = before
    else:
        name = f"argument {index + 1}"
    return f"{name[:60]}={_short_hash(argument.encode('utf-8', 'surrogateescape'))[:8]}"


@functools.lru_cache(maxsize=1)
def _versions() -> tuple[tuple[str, str], ...]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        version = _find_package_version(package)
        if version:
            found[package] = version
    found.update(_find_torch_build())
    nccl = next((version for name in _NCCL_PACKAGES if (version := _find_package_version(name))), None)
    if nccl:
        found["nccl"] = nccl
    driver = find_driver_version()
    if driver:
        found["driver"] = driver
    return tuple(found.items())


def find_versions() -> dict[str, str]:
    """Versions of python, torch, cuda, nccl, the driver and frameworks, where they exist; read from metadata."""
    return dict(_versions())


def _find_package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _find_torch_build() -> dict[str, str]:
    """``cuda`` and ``hip`` that torch was built for, from the text of its version file."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return {}
    found = {}
    try:
        tree = ast.parse((Path(spec.origin).parent / "version.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        name = target.id if isinstance(target, ast.Name) else ""
        if name in ("cuda", "hip") and isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[name] = value.value
    return found


def find_driver_version() -> str | None:
    """The NVIDIA kernel driver's version; None where it is not loaded."""
    try:
        text = _DRIVER_FILE.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"Kernel Module[^\d]*(\d+(?:\.\d+)+)", text)
    return match[1] if match else None


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
