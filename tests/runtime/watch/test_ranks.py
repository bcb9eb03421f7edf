"""Real gloo ranks under the watch: who is named, what the others say, how each process ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spmdguard.exitcodes import ExitCode

from ..processes import Ranks, Zygote

pytestmark = pytest.mark.processes
LEFT, STALLED = int(ExitCode.PEER_FAILED), int(ExitCode.STALLED)
HERE = Path(__file__).resolve().parents[1] / "scenarios" / "stalling.py"


def line_of(text: str) -> int:
    """The line of the scenarios that holds a text."""
    return next(n for n, line in enumerate(HERE.read_text().split("\n"), 1) if text in line)


def causes_in(text: str) -> set[str]:
    """What the ranks called the cause, without the places."""
    return {re.split(r" \((?:last seen )?at ", found)[0] for found in re.findall(r"the cause: (.*)", text)}


def run(zygote: Zygote, ranks: int, **arguments: object) -> Ranks:
    return zygote.run("stalling:part", ranks=ranks, one_stderr=True, timeout_s=20, **arguments)


def test_an_error_of_one_rank_is_the_only_cause(zygote: Zygote) -> None:
    """The failing rank shows its traceback and ends with 1; the others name it, escaped, and leave."""
    ended = run(zygote, 3, act="raise")
    assert ended.codes == [LEFT, 1, LEFT], ended.report()
    assert causes_in(ended.err) == {"rank 1 failed first: ValueError: loss became \\x1b[31mNaN"}, (
        ended.report()
    )
    assert f"stalling.py:{line_of('raise ValueError')} in fail" in ended.err
    assert ended.err.count("Traceback") == 1, ended.report()
    assert ended.num_left_over == 0


def test_an_error_of_a_rank_that_does_not_end_frees_the_others(zygote: Zygote) -> None:
    """Peers leave at once although the failing process, and its connections, stay."""
    ended = zygote.run(
        "stalling:part", ranks=2, one_stderr=True, timeout_s=4, act="raise_and_stay", stall_limit=100.0
    )
    assert ended.hung == [1], ended.report()
    assert ended[0].code == LEFT, ended.report()
    assert causes_in(ended.err) == {"rank 1 failed first: ValueError: no space left"}, ended.report()
    assert "acknowledged" in ended[1].out, ended.report()


def test_on_one_node_no_further_connection_to_the_store_is_needed(zygote: Zygote) -> None:
    """Where a new connection would wait for a name server, the ranks of a node still hear of the cause."""
    ended = zygote.run(
        "stalling:part",
        ranks=2,
        one_stderr=True,
        timeout_s=8,
        env={"LOCAL_WORLD_SIZE": "2"},
        act="raise_and_stay",
        stall_limit=100.0,
        connects=False,
    )
    assert ended.hung == [1], ended.report()
    assert ended[0].code == LEFT, ended.report()
    assert causes_in(ended.err) == {"rank 1 failed first: ValueError: no space left"}, ended.report()


@pytest.mark.parametrize("act", ["raise", "raise_and_stay"])
def test_ranks_that_construct_a_model_are_freed(zygote: Zygote, act: str) -> None:
    """Peers that are blocked in DDP's own check of the parameters leave with the cause, as from any collective."""
    ended = zygote.run("stalling:construct", ranks=3, one_stderr=True, timeout_s=12, act=act)
    assert {ended[0].code, ended[2].code} <= {LEFT, 1}, ended.report()
    assert (ended[1].code, ended.hung) == ((1, []) if act == "raise" else (None, [1])), ended.report()
    failure = "loss became \\x1b[31mNaN" if act == "raise" else "no space left"
    assert causes_in(ended.err) == {f"rank 1 failed first: ValueError: {failure}"}, ended.report()
    assert "s in construction at tests/runtime/scenarios/stalling.py" in ended.err, ended.report()


@pytest.mark.parametrize("act", ["kill", "os_exit"])
def test_a_rank_that_dies_without_a_word_is_named(zygote: Zygote, act: str) -> None:
    """A killed rank, or one that called os._exit, is named with its process by every other rank."""
    ended = run(zygote, 3, act=act)
    assert [ended[0].code in (1, LEFT), ended[2].code in (1, LEFT)] == [True, True], ended.report()
    (cause,) = causes_in(ended.err)
    assert cause.startswith("rank 1 died without a word (process "), ended.report()
    assert ended.hung == []


def test_a_rank_that_gloo_aborts_has_parted(zygote: Zygote) -> None:
    """A process that gloo ends because more came than it expects: both sides are named with their lines."""
    ended = run(zygote, 2, act="larger")
    assert (ended[0].code, ended[1].code in (1, LEFT)) == (-6, True), ended.report()
    assert "FAILED: ranks parted: rank 0 was aborted in all_reduce, by a collective mismatch" in ended.err, (
        ended.report()
    )
    assert "parted: at number 13" in ended.err, ended.report()
    for text in ("    dist.all_reduce(total)\n    dist.destroy", "    dist.all_reduce(torch.ones(4000))"):
        first = HERE.read_text().partition(text)[0].count("\n") + 1
        assert f"stalling.py:{first} in " in ended.err, ended.report()
    assert "ended by signal 6 (SIGABRT) in all_reduce" in ended.err, ended.report()


def test_a_killed_rank_is_named_with_the_signal(zygote: Zygote) -> None:
    """The signal is read before the parent of the process has asked for its exit code."""
    ended = run(zygote, 2, act="kill")
    assert "rank 1 died without a word" in ended.err, ended.report()
    assert "ended by signal 9 (SIGKILL)" in ended.err or "killed, or os._exit" in ended.err, ended.report()


def test_a_stopped_rank_is_named_and_leaves_too(zygote: Zygote) -> None:
    """A rank stopped by a signal is named at the limit, and runs again so that it can leave.

    Not before the others are about to end: it would meet them, and they would go on in a run that is given up.
    """
    ended = run(zygote, 4, act="stop")
    assert ended.codes == [STALLED] * 4, ended.report()
    assert "STALL: rank 1 is stopped by a signal" in ended.err, ended.report()
    said = re.findall(r"rank (\d) leaves", ended.err)
    assert sorted(said) == ["0", "1", "2", "3"], ended.report()


def test_a_rank_that_holds_the_gil_is_named_with_its_line(zygote: Zygote) -> None:
    """Native code that keeps the GIL is named with the line that called it, although that rank cannot speak."""
    ended = zygote.run("stalling:part", ranks=2, one_stderr=True, timeout_s=12, act="gil", stall_limit=3.0)
    assert ended[0].code == STALLED, ended.report()
    assert "STALL: rank 1 is silent: alive, but something holds the GIL" in ended.err, ended.report()
    assert f"stalling.py:{line_of('ctypes.PyDLL')} in hold_gil" in ended.err, ended.report()


def test_a_rank_that_is_elsewhere_is_named_with_its_line(zygote: Zygote, tmp_path: Path) -> None:
    """A rank that does not come is named with where it is; the report is written in every form."""
    ended = run(zygote, 2, act="sleep", report_dir=str(tmp_path))
    assert ended.codes == [STALLED, STALLED], ended.report()
    assert "STALL: rank 1 did not come: rank 0 waits in all_reduce" in ended.err, ended.report()
    assert f"stalling.py:{line_of('    time.sleep(60)')} in wait_alone" in ended.err, ended.report()
    suffixes = sorted("".join(path.suffixes) for path in tmp_path.iterdir())
    assert suffixes == [".html", ".json", ".trace.json", ".txt"]
    (found,) = (json.loads(path.read_text()) for path in tmp_path.glob("stall-*[0-9].json"))
    assert (found["kind"], found["suspects"]) == ("elsewhere", [1])


def test_ranks_in_different_collectives_are_named_with_both_lines(zygote: Zygote) -> None:
    """Both sides of a mismatch stand in the report, with the last collective that all ranks had in common."""
    ended = run(zygote, 2, act="mismatch")
    assert ended.codes == [STALLED, STALLED], ended.report()
    assert "rank 0 began all_reduce where rank 1 began broadcast, number 13" in ended.err, ended.report()
    assert "parted: after all_reduce, number 12" in ended.err
    assert f"stalling.py:{line_of('dist.broadcast(')} in meet_elsewhere" in ended.err


def test_a_rank_that_ended_early_is_named(zygote: Zygote) -> None:
    """A rank that ended well while another waits for it is the cause, whatever the lost connection says."""
    ended = run(zygote, 2, act="end", stall_limit=10.0)
    assert ended.codes == [1, 0], ended.report()
    assert causes_in(ended.err) == {"rank 1 ended while rank 0 waits in all_reduce"}, ended.report()


def test_an_error_made_of_a_lost_connection_is_no_cause(zygote: Zygote) -> None:
    """An error raised from that of a collective marks a victim."""
    ended = zygote.run("stalling:nested", ranks=2, one_stderr=True, timeout_s=20)
    assert ended[0].failed, ended.report()
    (cause,) = causes_in(ended.err)
    assert cause.startswith("rank 1 died without a word"), ended.report()


def test_between_nodes_the_cause_travels_through_the_store(zygote: Zygote) -> None:
    """Ranks of two nodes, which share no board, name the same cause within seconds."""
    ended = run(zygote, 4, act="raise", who=3, node_ranks=2)
    assert {1, LEFT} >= set(ended.codes), ended.report()
    assert len(causes_in(ended.err)) == 1, ended.report()


def test_between_nodes_one_report_tells_of_all(zygote: Zygote) -> None:
    """A rank of another node that does not come is named, with its line and host, in one report."""
    ended = run(zygote, 4, act="sleep", who=2, node_ranks=2)
    assert ended.codes == [STALLED] * 4, ended.report()
    assert ended.err.count("spmdguard: STALL:") == 1, ended.report()
    assert "STALL: rank 2 did not come: ranks 0-1, 3 wait in all_reduce" in ended.err, ended.report()
    assert "in wait_alone" in ended.err
    assert "(host node0)" in ended.err


def test_an_agreement_without_torch_is_seen(zygote: Zygote) -> None:
    """A rank that waits for the others' words in shared memory counts as waiting; the absent one is named."""
    ended = zygote.run("stalling:late_agreement", ranks=2, one_stderr=True, timeout_s=20)
    assert ended.codes == [STALLED] * 2, ended.report()
    assert "STALL: rank 1 did not come: rank 0 waits in sync_should_stop" in ended.err, ended.report()
    assert "in wait_alone" in ended.err, ended.report()


def test_waits_below_the_limit_are_left_alone(zygote: Zygote) -> None:
    """A rank that is late again and again, by less than the limit, disturbs nobody."""
    ended = zygote.run("stalling:wait_long", ranks=2, one_stderr=True, timeout_s=20)
    assert ended.codes == [0, 0], ended.report()
    assert "spmdguard" not in ended.err, ended.report()


def test_a_run_that_ends_well_leaves_nothing(zygote: Zygote) -> None:
    """Without a failure nothing is said, and the board is removed."""
    ended = run(zygote, 2)
    assert ended.codes == [0, 0], ended.report()
    assert "spmdguard" not in ended.err, ended.report()
    boards = {
        line.removeprefix("board ")
        for each in ended.ranks
        for line in each.out.split("\n")
        if "board" in line
    }
    (board,) = boards
    assert Path(board).is_absolute()
    assert not Path(board).exists()


def test_a_stall_may_only_be_reported(zygote: Zygote) -> None:
    """With abort=False the report is made once and the ranks go on."""
    ended = zygote.run(
        "stalling:part", ranks=2, one_stderr=True, timeout_s=20, act="nap", stall_limit=1.0, abort=False
    )
    assert ended.codes == [0, 0], ended.report()
    assert ended.err.count("spmdguard: STALL:") == 1, ended.report()


def test_torchs_record_is_read_without_loading_a_compiler(zygote: Zygote) -> None:
    """Calls come with operation, number and line; reading them does not make torch import its compiler."""
    ended = zygote.run("stalling:record", ranks=1)
    assert ended.codes == [0], ended.report()
    reduce = line_of("dist.all_reduce(torch.ones(2))")
    lines = ended[0].out.split("\n")
    calls = [re.sub(r" (True|False) ", " ", line) for line in lines if line.startswith("call")]
    assert calls == [f"call 0 1 all_reduce {reduce}", f"call 0 2 barrier {reduce + 1}"], ended.report()
    assert "group 0 0 2" in lines
    assert lines[-3:-1] == ["inductor False", "lazy True"]
