"""The board of a node: slots that outlive their ranks, notes of which the first stays, folders of ours alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spmdguard.watch import board as module
from spmdguard.watch.board import MAX_SLOT_BYTES, Board, process_state, remove_left_over
from spmdguard.watch.leaving import remove_board
from spmdguard.watch.peers import Peers
from spmdguard.watch.standing import Standing, to_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "board"


def test_ranks_read_what_others_say(folder: Path) -> None:
    """What one rank writes the others read, with its process and its age."""
    first, second = Board(folder, 0), Board(folder, 7)
    first.write(b"hello")
    found = second.read(0)
    assert found is not None
    beat_s, said_s, pid, payload = found
    assert (pid, payload, second.ranks()) == (os.getpid(), b"hello", [0, 7])
    assert 0 <= beat_s <= said_s < 60
    assert second.read(3) is None


def test_a_sign_of_life_keeps_what_was_said(folder: Path) -> None:
    """Saying that nothing changed leaves the payload, and makes the rank younger."""
    board = Board(folder, 0)
    board.write(b"x" * 100)
    before = board.read(0)
    board.beat()
    after = board.read(0)
    assert before is not None
    assert after is not None
    assert after[3] == b"x" * 100
    assert after[0] <= after[1]


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 16, b"\xff" * 5_000, b"\x00" * 32])
def test_a_slot_of_garbage_is_nothing(folder: Path, garbage: bytes) -> None:
    """Bytes that no rank wrote are read as nothing."""
    board = Board(folder, 0)
    (folder / "rank-1").write_bytes(garbage)
    assert Peers(board).read(1) is None


def test_more_than_a_slot_holds_is_refused(folder: Path) -> None:
    """The size of a slot is capped on writing."""
    with pytest.raises(ValueError, match="at most"):
        Board(folder, 0).write(b"x" * (MAX_SLOT_BYTES + 1))


def test_of_notes_the_first_stays(folder: Path) -> None:
    """A second note under the same name is not taken, and the first is found by all."""
    first, second = Board(folder, 0), Board(folder, 1)
    assert (first.post("cause", {"a": 1}), second.post("cause", {"a": 2})) == (True, False)
    assert second.find("cause") == {"a": 1}
    assert (first.has("cause"), first.has("call"), first.find("call")) == (True, False, None)


@pytest.mark.parametrize("text", ["[1]", "{", "x" * 100_000])
def test_a_note_of_garbage_is_nothing(folder: Path, text: str) -> None:
    """Notes that are no small JSON object are read as none."""
    board = Board(folder, 0)
    (folder / "cause").write_text(text)
    assert board.find("cause") is None


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    """A folder that others can read, or a link in its place, is not used."""
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for folder in (open_to_all, link):
        with pytest.raises(PermissionError, match="not a folder of this user alone"):
            Board(folder, 0)


def test_leftovers_of_dead_runs_are_removed(tmp_path: Path) -> None:
    """A folder whose processes are gone is removed when it is old; one of a living process stays."""
    dead, alive = (tmp_path / f"spmdguard-{os.getuid()}-{name}-n" for name in ("dead", "alive"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(timeout=60)
    for folder in (dead, alive):
        Board(folder, 0).write(b"x")
    slot = (dead / "rank-0").read_bytes()
    (dead / "rank-0").write_bytes(slot[:16] + ended.pid.to_bytes(8, sys.byteorder) + slot[24:])
    for folder in (dead, alive):
        os.utime(folder, (1, 1))
    remove_left_over(tmp_path)
    assert (dead.exists(), alive.exists()) == (False, True)


def test_a_leftover_that_another_rank_removes_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks that start together remove the same old folders; who comes second finds them gone."""
    monkeypatch.setattr(module, "_own_folders", lambda base: iter([base / "gone"]))
    remove_left_over(tmp_path)


def test_peers_learn_of_an_end_at_once(folder: Path) -> None:
    """The end of another rank's process ends a wait; what it last said is then that of a rank that died."""
    board, other = Board(folder, 0), Board(folder, 1)
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    other.write(to_json(Standing(rank=1, operation="barrier", state="waiting")))
    slot = (folder / "rank-1").read_bytes()
    (folder / "rank-1").write_bytes(slot[:16] + sleeper.pid.to_bytes(8, sys.byteorder) + slot[24:])
    peers = Peers(board)
    peers.find_new()
    assert (peers.is_alive(1), peers.leader()) == (True, 0)
    sleeper.kill()
    assert peers.wait(60.0)
    found = peers.read(1)
    assert found is not None
    assert (peers.gone, found.state, found.operation) == ({1}, "died", "barrier")
    sleeper.communicate(timeout=60)
    peers.close()


@pytest.mark.parametrize(("num_here", "stays"), [(1, False), (2, True)])
def test_the_last_rank_removes_the_board(folder: Path, num_here: int, stays: bool) -> None:
    """Where all ranks of the node have come and gone the folder goes too; one that is still to come finds it."""
    board = Board(folder, 0)
    board.post("cause", {"title": "x"})
    peers = Peers(board)
    remove_board(board, peers, num_here)
    peers.close()
    assert folder.exists() == stays


def test_a_rank_that_has_just_come_is_there(folder: Path) -> None:
    """Before it has said anything a rank already counts as a living process."""
    first, second = Board(folder, 0), Board(folder, 1)
    peers = Peers(first)
    assert (peers.is_there(second.rank), peers.read(1)) == (True, None)
    peers.close()


def test_states_of_processes_are_known() -> None:
    """This process runs; a process that does not exist has no state."""
    assert process_state(os.getpid()) in ("R", "S")
    assert process_state(2**22 + 1) == ""
