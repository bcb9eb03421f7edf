"""SPG110: passes of a pipeline that only some of its stages run."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

PROGRAM = """
import torch
import torch.distributed as dist

class Pipe:
    def __init__(self, stage, shape):
        self.stage, self.shape = stage, shape
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.is_first, self.is_last = self.rank == 0, self.rank == self.world - 1

    def run(self, batches, keep=False):
        kept = []
        for batch in batches:
            x = batch
            if not self.is_first:
                x = torch.empty(self.shape)
                dist.recv(x, src=self.rank - 1)
            y = self.stage(x)
            if not self.is_last:
                dist.send(y, dst=self.rank + 1)
            elif keep:
                kept.append(y)
        return kept

    def twice(self, batches, more):
        self.run(batches)
        if self.is_last and more:
            self.run(more)TWICE

def evaluate(pipe, batches, collector=None):
    outputs = pipe.run(batches, keep=True)
    dist.barrier()
REST
"""


@pytest.mark.parametrize(
    "rest",
    [
        """
    if collector is not None and pipe.is_last:
        collector(pipe.run(collector.batches, keep=True))  # SPG110
""",
        """
    if not pipe.is_last:
        return outputs
    return pipe.run(collector.batches, keep=True)  # SPG110
""",
        """
    pipe = Pipe(batches, outputs)
    if pipe.rank == 0:
        return None
    for batch in batches:
        pipe.run([batch])  # SPG110
""",
    ],
)
def test_a_pass_on_some_stages_alone(rest: str) -> None:
    """On the last stage, behind a return of the others, on all but the first; a method of the pipeline itself."""
    assert agree(PROGRAM.replace("REST", rest).replace("TWICE", "  # SPG110"), "SPG110")


@pytest.mark.parametrize(
    "rest",
    [
        """
    if collector is not None:
        extra = pipe.run(collector.batches, keep=True)
        if pipe.is_last:
            collector(extra)
""",
        """
    if pipe.is_last:
        return pipe.run(collector.batches, keep=True)
    return pipe.run(collector.batches)
""",
        """
    if pipe.is_last:
        extra = pipe.run(collector.batches, keep=True)
    else:
        dist.send(outputs[0], dst=pipe.rank + 1)
""",
        """
    if pipe.is_last:
        extra = pipe.run(collector.batches, keep=True)
    else:
        pipe.run(collector.batches)
        pipe.run([])
""",
        """
    if pipe.rank < 0:
        pipe.run(batches)
""",
    ],
)
def test_passes_of_all_stages(rest: str) -> None:
    """All stages run it, in one line or in two, or others send to those that run it; no rank takes the arm."""
    source = PROGRAM.replace("REST", rest).replace("TWICE", "").replace("if self.is_last and more", "if more")
    assert agree(source, "SPG110")


def test_helpers_that_the_rank_without_a_neighbour_does_not_call() -> None:
    """A stage receives from the one before it where there is one; called by all, the first stage has no partner."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Topology:
            def __init__(self):
                self.stage = dist.get_rank()
                self.first = self.stage == 0

        class Schedule:
            def __init__(self, topology, shape):
                self.topology, self.shape = topology, shape

            def receive(self):
                x = torch.empty(self.shape)
                dist.recv(x, src=self.topology.stage - 1)
                return x

            def forward(self, tokens):
                return tokens if self.topology.first else self.receive()

        class Careless:
            def __init__(self, topology, shape):
                self.topology, self.shape = topology, shape

            def fetch(self):
                x = torch.empty(self.shape)
                dist.recv(x, src=self.topology.stage - 1)  # SPG110
                return x

            def forward_of_all(self, tokens):
                return tokens + self.fetch()

        def main(batches):
            schedule = Schedule(Topology(), batches)
            for tokens in batches:
                schedule.forward(tokens)
        """,
        "SPG110",
    )
