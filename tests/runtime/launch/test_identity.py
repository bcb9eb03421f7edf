"""Identities: from the environment, to JSON and back, and what hostile records do."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spmdguard.format import escape_text, name_ranks_by_host
from spmdguard.launch.identity import MAX_IDENTITY_BYTES, Identity, find_identity, read_identity

QUICK = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
TORCHRUN = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "job7",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "SPMDGUARD_HOST": "b",
    "NCCL_DEBUG": "WARN",
    "NCCL_API_TOKEN": "hidden",
    "HOME": "/root",
}
SLURM = {"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "99"}


def test_torchrun_variables_are_read() -> None:
    """torchrun's variables give ranks, sizes, job, restart and address; only variables of interest travel."""
    found = find_identity(TORCHRUN, argv=["x.py"])
    assert (
        found.host,
        found.rank,
        found.local_rank,
        found.world_size,
        found.local_world_size,
    ) == ("b", 5, 1, 8, 4)
    assert (
        found.launcher,
        found.job,
        found.restart,
        found.address,
    ) == ("torchrun", "job7", 2, "a:29500")
    assert {"NCCL_DEBUG", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"} == set(found.environment)


def test_other_launchers_are_read() -> None:
    """SLURM, MPI and no launcher at all are told apart; what is not said is None."""
    slurm = find_identity(SLURM, argv=["x.py"])
    assert (
        slurm.launcher,
        slurm.rank,
        slurm.local_rank,
        slurm.world_size,
        slurm.job,
    ) == ("slurm", 3, 1, 4, "99")
    mpi = find_identity({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, argv=["x.py"])
    assert (mpi.launcher, mpi.rank, mpi.world_size, mpi.local_rank) == ("mpi", 1, 2, None)
    assert tuple(getattr(find_identity({}, argv=[""]), name) for name in ("launcher", "rank", "address")) == (
        "none",
        None,
        ":",
    )


def test_a_rank_that_is_no_number_is_unknown() -> None:
    """`RANK=two` is no rank, and SLURM's is not taken instead; the text is kept for the report."""
    found = find_identity({**SLURM, "RANK": "two"}, argv=["x.py"])
    assert (found.rank, found.environment["RANK"]) == (None, "two")


def test_scripts_and_arguments_are_told_apart(tmp_path: Path) -> None:
    """Content decides about scripts; arguments carry names but no values; per-rank ones do not count."""
    script = tmp_path / "train.py"
    script.write_text("a = 1\n")
    one = find_identity({}, argv=[str(script), "--lr=0.1", "--token", "hidden", "data", "--local_rank=0"])
    assert "hidden" not in one.to_json()
    assert [item.split("=")[0] for item in one.arguments] == ["--lr", "--token", "--token", "argument 4"]
    other = find_identity(
        {}, argv=[str(script), "--lr=0.2", "--token", "hidden", "data", "--local-rank", "1"]
    )
    assert one.arguments_hash != other.arguments_hash
    assert [a != b for a, b in zip(one.arguments, other.arguments, strict=True)] == [
        True,
        False,
        False,
        False,
    ]
    assert one.script_hash == other.script_hash != ""
    script.write_text("a = 2\n")
    assert one.script_hash != find_identity({}, argv=[str(script)]).script_hash


def test_versions_need_no_torch() -> None:
    """The versions of torch and Python are found without importing torch."""
    program = (
        "import sys\nfrom spmdguard.launch.identity import find_identity\n"
        "v = find_identity().versions\nprint(v['python'], v.get('torch'), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    import importlib.metadata

    expected = [sys.version.split()[0], importlib.metadata.version("torch"), "False"]
    assert expected == done.stdout.split()


def test_identities_survive_the_way() -> None:
    """JSON and back gives the same identity."""
    found = replace(find_identity(TORCHRUN, argv=["x.py", "--a"]), faults=("x",), devices=2)
    assert found == read_identity(found.to_json())


def test_large_identities_are_cut() -> None:
    """However large the environment, the record stays below its limit and can be read."""
    environment = {f"NCCL_{i:04}": "x" * 5000 for i in range(500)}
    text = find_identity({**TORCHRUN, **environment}, argv=["é" * 100_000] * 50).to_json()
    assert len(text) <= MAX_IDENTITY_BYTES
    assert read_identity(text).rank == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 10_000,
        "{}",
        '{"host": "a"}',
        '{"host": "a", "pid": "1"}',
        '{"host": "a", "pid": true}',
        '{"host": "a", "pid": 1e999}',
        '{"host": "a", "pid": 99999999999999999999}',
        '{"host": 3, "pid": 1}',
        '{"host": "a", "pid": 1, "versions": {"x": 1}}',
        '{"host": "a", "pid": 1, "versions": []}',
        '{"host": "a", "pid": 1, "faults": [1]}',
        "x" * (MAX_IDENTITY_BYTES + 1),
    ],
)
def test_bad_records_are_value_errors(text: str) -> None:
    """A record that is no identity is a ValueError, and nothing else."""
    with pytest.raises(ValueError, match=r"record|expected"):
        read_identity(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
FIELDS = st.sampled_from([*Identity.__dataclass_fields__, "unknown"])


@QUICK
@given(st.binary() | st.dictionaries(FIELDS, JSON).map(lambda data: json.dumps(data).encode()))
def test_any_record_is_an_identity_or_a_value_error(record: bytes) -> None:
    """No bytes crash the reader, and what it accepts prints without control characters."""
    try:
        found = read_identity(record)
    except ValueError as error:
        assert str(error).isprintable()
        return
    assert found.describe().isprintable()
    assert found == read_identity(found.to_json())


@QUICK
@given(st.text(), st.integers(2, 300))
def test_escaped_text_cannot_steer_a_terminal(text: str, limit: int) -> None:
    """Any text becomes printable; printable text below the limit stays as it is."""
    escaped = escape_text(text, limit)
    assert escaped.isprintable()
    escaped.encode()
    if text.isprintable() and len(text) <= limit:
        assert text == escaped


def test_escapes_are_shown() -> None:
    """Terminal escapes, line ends and bidirectional overrides are shown as escapes."""
    assert escape_text("\x1b[2J\n\x9b\u202e\ud800") == r"\x1b[2J\n\x9b\u202e\ud800"
    assert escape_text("a" * 100, 5) == "aaaa…"


def test_ranks_are_grouped_by_host() -> None:
    """Ranks become ranges for each host, in order of their first rank."""
    assert (
        name_ranks_by_host({4: "b", 0: "a", 1: "a", 2: "b", 3: "c"})
        == "ranks 0-1 (host a), ranks 2, 4 (host b), rank 3 (host c)"
    )
