"""Experiment trackers that tell the truth: FINISHED only where nothing failed, else FAILED with the cause."""

from spmdguard.reporters.base import Reporter
from spmdguard.reporters.contexts import ContextReporter, ReporterGroup, WriterReporter
from spmdguard.reporters.mlflow import MLflowReporter
from spmdguard.reporters.outcome import Outcome
from spmdguard.reporters.wandb import WandbReporter

__all__ = [
    "ContextReporter",
    "MLflowReporter",
    "Outcome",
    "Reporter",
    "ReporterGroup",
    "WandbReporter",
    "WriterReporter",
]
