from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object


class Client(Protocol):
    def generate(self, prompts: list[str], **options: Any) -> list[str]: ...


@dataclass
class SamplingOptions:
    temperature: float = 0.7
    max_tokens: int = 128
    repeat: int = 2

    def as_kwargs(self) -> dict[str, Any]:
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, "n": self.repeat}


class Rollouts:
    """Generation is done by a server that only the main process talks to."""

    def __init__(self, client: Client, options: SamplingOptions | None = None):
        self.client = client
        self.options = options or SamplingOptions()
        self.state = PartialState()

    def collect(self, prompts: list[str]) -> list[dict]:
        if not prompts:
            return []
        answers = self._through_server(prompts)
        return [{"prompt": p, "answer": a} for p, a in zip(prompts, answers)]

    def _through_server(self, prompts: list[str]) -> list[str]:
        counts = gather_object([len(prompts)])
        everything = gather_object(prompts)
        box = [None]
        if self.state.is_main_process:
            box = [self.client.generate(everything, **self.options.as_kwargs())]
        broadcast_object_list(box, from_process=0)
        first = sum(counts[: self.state.process_index])
        return box[0][first: first + len(prompts)]


def my_share(prompts: list[str], size: int, state: PartialState) -> list[str]:
    first = state.process_index * size
    return prompts[first: first + size]


def rollout_epoch(rollouts: Rollouts, prompts: list[str], size: int = 4) -> list[dict]:
    state = rollouts.state
    stride = size * state.num_processes
    rows: list[dict] = []
    for start in range(0, len(prompts), stride):
        share = my_share(prompts[start: start + stride], size, state)
        rows.extend(rollouts.collect(share))
    state.wait_for_everyone()
    return rows
