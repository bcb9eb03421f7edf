"""Deferral, agreement and refusal as a state machine: any program, on any schedule, beside a plain model."""

from __future__ import annotations

import importlib.util
import logging
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import spmdguard
from spmdguard.testing import SimulatedWorld, fault_point

from .agreement_model import Model

MAX_RANKS = 4
LIMIT_S = 3600.0
ranks_of = st.sets(st.integers(0, MAX_RANKS - 1), max_size=2)
with_torch = st.booleans() if importlib.util.find_spec("torch") else st.just(False)
Action = Callable[[int], Any]


def rank_of() -> int:
    from spmdguard.group.world import world

    return world().rank()


def answer_of(action: Action, rank: int) -> str:
    """What a call gives: its value, or the name of its error."""
    try:
        return repr(action(rank))
    except Exception as exc:
        return type(exc).__name__


def take(rank: int) -> Any:
    """The deferred error and the number of later ones; the text is what the model predicts."""
    try:
        spmdguard.raise_if_deferred_error()
    except Exception as exc:
        later = [note for note in getattr(exc, "__notes__", []) if "later error" in note]
        number = int(later[0].split()[1]) if later else 0
        return _Text(f"{exc} +{number}")
    return None


def shorten(text: str) -> str:
    """Leave out what a refused collective says about its place, which the model does not know."""
    title = "was begun inside rank-local work and did not start"
    before, found, after = text.partition(title)
    return f"{before}{title} +{after.rpartition(' +')[2]}" if found else text


class _Text(str):
    def __repr__(self) -> str:
        return str(self)


class Agreement(RuleBasedStateMachine):
    """Rules add an action to the program and ask the model; the end runs the program on simulated ranks."""

    @initialize(ranks=st.integers(1, MAX_RANKS), seed=st.integers(0, 99), torch=with_torch)
    def begin(self, ranks: int, seed: int, torch: bool) -> None:
        self.world = SimulatedWorld(ranks, seed, torch=torch)
        self.model = Model(ranks)
        self.program: list[Action] = []
        self.expected: list[list[str]] = []

    def add(self, action: Action, answers: list[str]) -> None:
        self.program.append(action)
        self.expected.append(list(answers))

    def present(self, ranks: set[int]) -> set[int]:
        return {rank for rank in ranks if rank < self.model.num_ranks}

    @rule(failing=ranks_of)
    def work(self, failing: set[int]) -> None:
        """Rank-local work fails on some ranks."""
        label = f"error {len(self.program)}"

        @spmdguard.rank_local
        def upload(rank: int) -> str:
            if rank in failing:
                raise OSError(label)
            return "done"

        self.add(upload, self.model.defer(self.present(failing), label))

    @rule(inside=ranks_of)
    def communicate_inside(self, inside: set[int]) -> None:
        """Some ranks try to agree inside rank-local work: refused there, deferred, nobody waits."""
        number = len(self.program)

        def step(rank: int) -> Any:
            if rank not in inside:
                return "done"
            spmdguard.try_or_defer(spmdguard.barrier, f"number {number}")
            return None

        present = self.present(inside)
        shown = (
            "barrier 'number {0}' was begun inside rank-local work and did not start" if present else ""
        ).format(number)
        refused = {rank for rank in present if rank in self.model.broken}
        answers = self.model.defer(present - refused, shown)
        for rank in refused:
            answers[rank] = "CommunicationBroken"
        self.add(step, answers)

    @rule(told=ranks_of, how=st.sampled_from(["signal", "limit"]))
    def ask_from_outside(self, told: set[int], how: str) -> None:
        """A signal reaches some ranks, or the limit of time has passed on them."""
        place = f"place {len(self.program)}"
        for rank in self.present(told):
            if how == "signal":
                self.world.signal(rank, signal.SIGTERM, at=place)
            else:
                self.world.advance(rank, seconds=LIMIT_S, at=place)
        self.add(lambda rank: fault_point(place), self.model.tell(self.present(told)))

    @rule()
    def take(self) -> None:
        """The end of a run: errors are raised and cleared."""
        self.add(take, self.model.take())

    @rule(failing=ranks_of, nested=st.booleans())
    def reduce(self, failing: set[int], nested: bool) -> None:
        """A guarded collective fails on some ranks; rank-local work around it does not swallow that."""

        @spmdguard.collective
        def reduce(rank: int) -> str:
            if rank in failing:
                raise RuntimeError("lost")
            return "reduced"

        action: Action = (lambda rank: spmdguard.try_or_defer(reduce, rank)) if nested else reduce
        self.add(action, self.model.collective(self.present(failing) - self.model.broken))

    @rule()
    def barrier(self) -> None:
        """All ranks meet."""
        self.add(lambda rank: spmdguard.barrier(), self.model.meet())

    @rule()
    def resume(self) -> None:
        """The latch stays closed while the group is the same."""
        self.add(lambda rank: spmdguard.resume_communication(), self.model.resume())

    @rule(
        wishes=st.lists(st.sampled_from([None, False, True]), min_size=MAX_RANKS, max_size=MAX_RANKS),
        every=st.sampled_from([1, 1, 1, 2, 3]),
        overlap=st.booleans(),
    )
    def sync(self, wishes: list[bool | None], every: int, overlap: bool) -> None:
        """All ranks agree whether to stop."""

        def sync(rank: int) -> bool:
            return spmdguard.sync_should_stop(wishes[rank], every_n_steps=every, overlap=overlap)

        self.add(sync, self.model.sync(wishes[: self.model.num_ranks], every, overlap))

    def teardown(self) -> None:
        """Run the program on every rank and compare all answers, and the state that is left."""
        if not hasattr(self, "program"):
            return

        def run_program() -> tuple[list[str], Any, bool]:
            rank = rank_of()
            spmdguard.stop_on_signal(signal.SIGTERM)
            spmdguard.stop_after(LIMIT_S)
            answers = [answer_of(action, rank) for action in self.program]
            reason = spmdguard.stop_reason()
            return answers, None if reason is None else list(reason.ranks), spmdguard.has_deferred_error()

        outcomes = self.world.outcomes(run_program)
        assert [None] * self.model.num_ranks == [each.error for each in outcomes]
        for rank, each in enumerate(outcomes):
            answers, reason, deferred = each.result
            expected = [by_rank[rank] for by_rank in self.expected]
            assert expected == [shorten(text) for text in answers]
            assert (self.model.reason, rank in self.model.first) == (reason, deferred)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of deferred errors are logged otherwise."""
    logging.getLogger("spmdguard").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("spmdguard").setLevel(logging.NOTSET)


class _ForgetsPendingAskers(Model):
    """A model that is wrong about a late agreement."""

    def _agree(self, askers: set[int]) -> list[str]:
        return super()._agree({min(askers)})


class _KeepsTheLast(Model):
    """A model that is wrong about which error wins."""

    def defer(self, failing: set[int], label: str) -> list[str]:
        answers = super().defer(failing, label)
        self.first.update(dict.fromkeys(failing, label))
        return answers


@pytest.mark.parametrize("wrong", [_ForgetsPendingAskers, _KeepsTheLast])
def test_the_comparison_can_fail(wrong: type[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a model that is wrong in one point, a counter-example is found."""
    monkeypatch.setattr(f"{__name__}.Model", wrong)
    few = settings(TestAgreement.settings, max_examples=300, phases=[Phase.generate], database=None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Agreement, settings=few)


class TestAgreement(Agreement.TestCase):  # type: ignore[misc, name-defined]  # made by hypothesis
    """Any program gives every rank what the model says."""

    settings = settings(
        max_examples=120,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
