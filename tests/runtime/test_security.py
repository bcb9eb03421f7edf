"""What a run exposes: nothing that came from elsewhere is unpickled or given to a shell, and nothing else listens."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes.ports import free_port

RUNTIME = Path(__file__).resolve().parents[2] / "spmdguard"
DANGEROUS = {
    ("pickle", "load"),
    ("pickle", "loads"),
    ("pickle", "Unpickler"),
    ("marshal", "loads"),
    ("os", "system"),
    ("os", "popen"),
    ("torch", "load"),
}
KNOWN = {("group/progress.py", "pickle.loads")}  # torch's own record of this process, made a moment before


def dangers_in(source: str) -> Iterator[str]:
    """Calls that run what they are given: unpickling, shells, and `eval`; sockets that listen."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if any(keyword.arg == "shell" for keyword in node.keywords):
            yield "shell="
        match node.func:
            case ast.Name(id="eval" as name):
                yield name
            case ast.Attribute(attr="listen", value=ast.Name(id="server" | "socket" | "sock")):
                yield "listen"
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in DANGEROUS:
                yield f"{module}.{name}"


def test_nothing_from_elsewhere_is_run() -> None:
    """No file of the runtime unpickles, evaluates or gives to a shell, but for one read of torch's own record."""
    found = {
        (path.relative_to(RUNTIME).as_posix(), danger)
        for path in sorted(RUNTIME.rglob("*.py"))
        for danger in dangers_in(path.read_text(encoding="utf-8"))
    }
    assert found == KNOWN


@pytest.mark.parametrize(
    "source", ["pickle.loads(x)", "run(x, shell=True)", "eval(x)", "torch.load(x)", "server.listen()"]
)
def test_the_check_can_fail(source: str) -> None:
    """Each kind of danger is found."""
    assert len(list(dangers_in(source))) == 1


LISTENS = """
import json, os, sys
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
mine = set()
for name in os.listdir("/proc/self/fd"):
    try:
        mine.add(os.readlink(f"/proc/self/fd/{name}"))
    except OSError:
        pass
found = []
for family in ("tcp", "tcp6", "udp", "udp6"):
    for line in open(f"/proc/self/net/{family}").read().splitlines()[1:]:
        cells = line.split()
        address, state, inode = cells[1], cells[3], cells[9]
        if f"socket:[{inode}]" in mine and (state == "0A" or family.startswith("udp")):
            found.append([family, address.rpartition(":")[0]])
open(sys.argv[1], "w").write(json.dumps(sorted(found)))
dist.destroy_process_group()
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc")
def test_a_guarded_run_listens_where_the_bare_one_does(tmp_path: Path) -> None:
    """The same addresses are open, for the rendezvous and for gloo, and as many: nothing of ours listens."""
    (tmp_path / "train.py").write_text(LISTENS)
    told = []
    for name, command in (("bare", []), ("guarded", ["-m", "spmdguard", "run"])):
        output = tmp_path / name
        done = subprocess.run(
            [sys.executable, *command, "train.py", str(output)],
            cwd=tmp_path,
            env={
                **os.environ,
                "RANK": "0",
                "WORLD_SIZE": "1",
                "LOCAL_RANK": "0",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(free_port()),
                "OMP_NUM_THREADS": "1",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told.append(json.loads(output.read_text()))
    bare, guarded = told
    assert bare == guarded
    assert len(bare) >= 1
