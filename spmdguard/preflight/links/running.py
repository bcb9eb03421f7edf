"""The layers in order, on every rank: one process, one host, all hosts, pairs, clocks, the shared folder."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmdguard.format import escape_text, format_exception_line
from spmdguard.group.world import Channel, world
from spmdguard.launch import Launched
from spmdguard.preflight.links.pairing import make_rounds

__all__ = ["LayerFailed", "Options", "run_layers"]

_SMALL = (1, 1000)
_FOLDER_TIMEOUT_S = 10.0
_MAX_TEXT = 2**20


@dataclass(frozen=True)
class Options:
    """What to measure with: the largest message, memory to probe, and the folder that hosts share."""

    message_mib: float = 8.0
    memory_mib: int = 64
    folder: Path | None = None


class LayerFailed(Exception):
    """A layer did not come to its end on this rank."""

    def __init__(self, layer: str, error: BaseException) -> None:
        super().__init__(layer, error)
        self.layer = layer
        self.error = error

    def __str__(self) -> str:
        why = escape_text(format_exception_line(self.error), 300)
        return f"layer {self.layer.removesuffix('_s')!r} did not end: {why}"


class _Alone:
    """The channel of a single process."""

    def gather_texts(self, text: str) -> list[str]:
        return [text]

    def barrier(self) -> None:
        return

    def group(self) -> Any:
        return None


def run_layers(launched: Launched, options: Options, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Results of all ranks, in order of ranks; ``tell`` hears of each layer as it begins.

    SPMD:
        Collective: everything that is measured, on the default group and on one group for each host.
        Called by: every rank, once.
        Result: rank-invariant.
        Raises on: every rank where a layer does not end.
    """
    import torch.distributed as dist

    from spmdguard.group.devices import default_device
    from spmdguard.preflight.links import probes

    channel: Any = world().channel() or _Alone()
    rank, size = dist.get_rank(), dist.get_world_size()
    device = default_device(world().local_rank(), str(dist.get_backend()))
    result: dict[str, Any] = {
        "host": launched.identity.host,
        "pid": launched.identity.pid,
        "device": str(device),
    }
    hosts = [escape_text(host) for host in channel.gather_texts(str(result["host"]))]
    num_elements = max(1, int(options.message_mib * 2**20 / 4))
    sizes = [*(n for n in _SMALL if n < num_elements), num_elements]

    def layer(name: str, measure: Callable[[], Any]) -> None:
        tell(name)
        try:
            channel.barrier()
            result[name] = measure()
        except Exception as error:
            raise LayerFailed(name, error) from error

    layer("process", lambda: probes.probe_process(device, options.memory_mib))
    layer("one host", lambda: _probe_hosts(probes, hosts, rank, device, sizes))
    everyone = range(size)
    layer("all hosts", lambda: probes.probe_collectives(None, everyone, device, sizes))
    layer("pairs", lambda: _probe_pairs(probes, rank, everyone, device, num_elements, channel))
    layer("clock_s", lambda: probes.probe_clock(rank, size, channel.group()))
    layer("folder_s", lambda: _probe_folder(options.folder, rank, channel))
    return [_read_result(text) for text in channel.gather_texts(json.dumps(result))]


def _probe_hosts(
    probes: Any, hosts: Sequence[str], rank: int, device: Any, sizes: Sequence[int]
) -> list[dict[str, Any]]:
    """Every rank takes part in making the group of each host, in the same order."""
    import torch.distributed as dist

    own = None
    members: list[int] = []
    for host in dict.fromkeys(hosts):
        ranks = [each for each, name in enumerate(hosts) if name == host]
        group = dist.new_group(ranks)
        if rank in ranks:
            own, members = group, ranks
    found: list[dict[str, Any]] = probes.probe_collectives(own, members, device, sizes)
    return found


def _probe_pairs(
    probes: Any, rank: int, ranks: Sequence[int], device: Any, num_elements: int, channel: Channel
) -> list[dict[str, Any]]:
    found = []
    for pairs in make_rounds(list(ranks)):
        channel.barrier()
        mine = next((pair for pair in pairs if rank in pair), None)
        if mine is not None:
            found.append(probes.probe_pair(*mine, device, num_elements))
    return found


def _probe_folder(folder: Path | None, rank: int, channel: Channel) -> float | None:
    """Seconds until this rank sees a file that rank 0 wrote; None where it does not; 0 without a folder."""
    if folder is None:
        return 0.0
    token = secrets.token_hex(8) if rank == 0 else ""
    name = channel.gather_texts(token)[0]
    path = folder / f".spmdguard-preflight-{name}"
    if rank == 0:
        part = path.with_name(f"{path.name}.part")
        part.write_text(name, encoding="utf-8")
        part.replace(path)
    channel.barrier()
    delay = _wait_for_file(path, name)
    channel.barrier()
    if rank == 0:
        path.unlink()
    return delay


def _wait_for_file(path: Path, content: str) -> float | None:
    started_s = time.monotonic()
    while (waited_s := time.monotonic() - started_s) < _FOLDER_TIMEOUT_S:
        try:
            if path.read_text(encoding="utf-8") == content:
                return waited_s
        except OSError:
            pass  # not visible yet
        time.sleep(0.01)
    return None


def _read_result(text: str) -> dict[str, Any]:
    if len(text) > _MAX_TEXT:
        raise ValueError(f"a rank sent {len(text)} bytes of results")
    data: Mapping[str, Any] = json.loads(text)
    return {**data, "host": escape_text(str(data["host"]))}
