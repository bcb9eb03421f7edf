"""MLflow: the run's status is FINISHED, FAILED or KILLED, and its tags hold the root cause."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from spmdguard.reporters.base import Reporter
from spmdguard.reporters.outcome import Outcome

_TAG_LENGTH = 4900
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""MLflow's own are 7 retries and 120 s: a server that is down would hold the other ranks for minutes."""


class MLflowReporter(Reporter):
    """Report a run to MLflow: ``run(train, reporter=MLflowReporter(experiment="pretraining"))``.

    Inside, MLflow's own functions (``mlflow.log_metric``) work on the main rank; call them in
    ``@rank_local(only="main")`` work, or use ``log``. A failed run has the tags ``spmdguard.cause`` and
    ``spmdguard.traceback``.

    SPMD:
        Rank-local: no communication.
        Called by: every rank; all but the main one do nothing.
        Result: none.
        Raises on: no rank, except the main one where closing fails and no process group is left.

    Args:
        experiment: name of the experiment; MLflow's present one without it.
        run_name: name of the run.
        run_id: a run to go on with.
        tracking_uri: server or store; MLflow's present one without it.
        params: parameters to record.
        tags: tags to set.
    """

    name = "MLflow reporter"

    def __init__(
        self,
        *,
        experiment: str | None = None,
        run_name: str | None = None,
        run_id: str | None = None,
        tracking_uri: str | None = None,
        params: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.run_id = run_id
        self._experiment = experiment
        self._run_name = run_name
        self._tracking_uri = tracking_uri
        self._params = dict(params or {})
        self._tags = dict(tags or {})

    def _open(self) -> None:
        mlflow: Any = import_module("mlflow")

        with _impatient():
            if self._tracking_uri is not None:
                mlflow.set_tracking_uri(self._tracking_uri)
            if self._experiment is not None:
                mlflow.set_experiment(self._experiment)
            started = mlflow.start_run(run_id=self.run_id, run_name=self._run_name, tags=self._tags or None)
            self.run_id = str(started.info.run_id)
            if self._params:
                mlflow.log_params(self._params)

    def _log(self, metrics: Mapping[str, float], step: int | None) -> None:
        mlflow: Any = import_module("mlflow")

        mlflow.log_metrics(dict(metrics), step=step, run_id=self.run_id)

    def _close(self, outcome: Outcome, exc: BaseException | None) -> None:
        mlflow: Any = import_module("mlflow")

        with _impatient():
            client = mlflow.MlflowClient()
            try:
                if outcome.cause:
                    client.set_tag(self.run_id, "spmdguard.cause", outcome.cause[:_TAG_LENGTH])
                if outcome.traceback:
                    client.set_tag(self.run_id, "spmdguard.traceback", outcome.traceback[-_TAG_LENGTH:])
            finally:
                active = mlflow.active_run()
                if active is not None and active.info.run_id == self.run_id:
                    mlflow.end_run(outcome.status)
                else:  # ended by the program itself, or opened in another thread
                    client.set_terminated(self.run_id, outcome.status)


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Bound how long a server that does not answer holds the run, unless the user has set that."""
    added = [name for name in _PATIENCE if name not in os.environ]
    os.environ.update({name: _PATIENCE[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
