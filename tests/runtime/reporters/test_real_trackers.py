"""MLflow, Weights & Biases and TensorBoard themselves: what their stores hold after a run has ended."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spmdguard
from spmdguard.reporters import MLflowReporter, WandbReporter

from ..processes import Zygote

pytestmark = pytest.mark.processes
OUTCOMES = {
    "nothing": ("FINISHED", ""),
    "other local": ("FAILED", "rank 1: OSError: upload"),
    "other at once": ("FAILED", "rank 1: OSError: at once"),
    "post_train": ("FAILED", "rank 0: OSError: export"),
}
SLICE = [
    pytest.param(name, marks=[] if name in ("nothing", "other local") else pytest.mark.long)
    for name in OUTCOMES
]


@pytest.fixture(autouse=True)
def file_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow wants to be asked for its file store, the only one that mlflow-skinny has."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def run_tracked(zygote: Zygote, folder: Path, kind: str, failing: str) -> None:
    pytest.importorskip(kind)
    ended = zygote.run("tracking:tracked", ranks=2, timeout_s=180, folder=folder, kind=kind, failing=failing)
    assert ended.hung == [], ended.report()
    assert [each.code != 0 for each in ended.ranks] == [failing != "nothing", failing.startswith("other")]


def mlflow_runs(uri: str) -> list[Any]:
    mlflow = pytest.importorskip("mlflow")
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiments = [each.experiment_id for each in client.search_experiments()]
    return list(client.search_runs(experiments))


@pytest.mark.parametrize("failing", SLICE)
def test_mlflow_has_the_status_and_the_root_cause(zygote: Zygote, tmp_path: Path, failing: str) -> None:
    """Two ranks, one MLflow run: its status, its tag with the cause, the metrics of the main rank."""
    run_tracked(zygote, tmp_path, "mlflow", failing)
    (run,) = mlflow_runs(f"file:{tmp_path}/mlruns")
    status, cause = OUTCOMES[failing]
    assert run.info.status == status
    assert run.data.tags.get("spmdguard.cause", "") == cause
    assert ("Error" in run.data.tags.get("spmdguard.traceback", "")) == bool(cause)
    assert run.data.metrics["loss"] in (2.0, 3.0)


@pytest.fixture
def mlflow_uri(tmp_path: Path) -> Iterator[str]:
    """A store of its own."""
    mlflow = pytest.importorskip("mlflow")
    yield f"file:{tmp_path}/mlruns"
    mlflow.set_tracking_uri(None)


def test_mlflow_status_of_an_interrupt(mlflow_uri: str) -> None:
    """A run that is interrupted is KILLED."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spmdguard.run(interrupt, reporter=MLflowReporter(tracking_uri=mlflow_uri, params={"rate": 1}))
    (run,) = mlflow_runs(mlflow_uri)
    assert (run.info.status, run.data.params) == ("KILLED", {"rate": "1"})


def test_mlflow_run_that_the_program_ended_itself(mlflow_uri: str) -> None:
    """A run that was closed as FINISHED too early is FAILED in the end."""
    mlflow = pytest.importorskip("mlflow")

    def train() -> None:
        mlflow.end_run()
        raise OSError("afterwards")

    with pytest.raises(OSError, match="afterwards"):
        spmdguard.run(train, reporter=MLflowReporter(tracking_uri=mlflow_uri))
    (run,) = mlflow_runs(mlflow_uri)
    assert run.info.status == "FAILED"


def test_mlflow_server_that_is_down() -> None:
    """Training goes on, and the run ends with the tracker's error in bounded time."""
    pytest.importorskip("mlflow")
    trained: list[bool] = []
    with pytest.raises(Exception, match=r"127\.0\.0\.1") as caught:
        spmdguard.run(
            lambda: trained.append(spmdguard.sync_should_stop()),
            reporter=MLflowReporter(tracking_uri="http://127.0.0.1:9", experiment="e"),
        )
    assert trained == [True]
    assert type(caught.value).__name__ == "MlflowException"


def wandb_records(folder: Path) -> list[Any]:
    """The records of the one offline run below ``folder``: a file of blocks of 32 KiB, as LevelDB's log."""
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    data, position, records, parts = path.read_bytes(), 7, [], b""
    while position + 7 <= len(data):
        left_in_block = 32768 - position % 32768
        if left_in_block < 7:
            position += left_in_block
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + 7])
        parts += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # the whole record, or its last part
            record = pb.Record()
            record.ParseFromString(parts)
            records.append(record)
            parts = b""
    return records


def check_wandb(folder: Path, exit_code: int, cause: str) -> None:
    records = wandb_records(folder)
    (ended,) = [each.exit for each in records if each.WhichOneof("record_type") == "exit"]
    assert ended.exit_code == exit_code
    summary = {
        "/".join(item.nested_key) or item.key: item.value_json
        for each in records
        if each.WhichOneof("record_type") == "summary"
        for item in each.summary.update
    }
    assert summary.get("spmdguard/cause", '""') == f'"{cause}"'


@pytest.mark.parametrize("failing", SLICE)
def test_wandb_has_the_exit_code_and_the_root_cause(zygote: Zygote, tmp_path: Path, failing: str) -> None:
    """Two ranks, one offline run: its exit code, and the cause in its summary."""
    run_tracked(zygote, tmp_path, "wandb", failing)
    status, cause = OUTCOMES[failing]
    check_wandb(tmp_path, int(status == "FAILED"), cause)


def test_wandb_that_does_not_open_is_deferred(tmp_path: Path) -> None:
    """Training goes on, and the run ends with the tracker's error."""
    pytest.importorskip("wandb")
    trained: list[bool] = []
    reporter = WandbReporter(project="p", mode="no such mode", dir=str(tmp_path))
    with pytest.raises(Exception, match="mode"):
        spmdguard.run(lambda: trained.append(True), reporter=reporter)
    assert trained == [True]


@pytest.mark.parametrize("failing", ["nothing", "other local"])
def test_tensorboard_has_the_outcome(zygote: Zygote, tmp_path: Path, failing: str) -> None:
    """Two ranks, one writer: the metrics, and the outcome as text."""
    run_tracked(zygote, tmp_path, "tensorboard", failing)
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loading.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [each.step for each in events.Scalars("loss")][:2] == [0, 1]
    (text,) = events.Tensors("spmdguard/outcome/text_summary")
    status, cause = OUTCOMES[failing]
    assert text.tensor_proto.string_val[0].decode() == (f"{status}: {cause}" if cause else status)
