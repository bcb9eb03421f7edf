"""What a rank does when it leaves because of another: say the one cause, let the others say it too, and end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import NoReturn

from spmdguard.exitcodes import ExitCode
from spmdguard.format import name_ranks
from spmdguard.group.bounded import call_bounded
from spmdguard.primary import write_error_file
from spmdguard.watch.board import Board, find_host
from spmdguard.watch.cause import STALLED, Cause
from spmdguard.watch.peers import Peers
from spmdguard.watch.report import format_places
from spmdguard.watch.standing import Standing, parse_ranks

LINGER_S = 1.0
OTHERS_END_S = 5.0
_ASK_S = 0.1


def describe_for(rank: int, cause: Cause, standing: Standing, waited_s: float) -> str:
    """What a rank that is not the cause says."""
    if cause.kind == STALLED and cause.concerns(rank):
        text = f"spmdguard: rank {rank} leaves the stalled run: {cause.title}"
    else:
        text = f"spmdguard: rank {rank} leaves, it is a victim; the cause: {cause.title}"
    if standing.state == "waiting":
        text += (
            f"\n  it waited {waited_s:.1f} s in {standing.operation} at {format_places(standing.places, 2)}"
        )
    return text


def say(text: str) -> None:
    """Write to stderr in one piece, so that the ranks' lines do not mix; never raises."""
    with contextlib.suppress(Exception):
        data = f"{text}\n".encode(errors="backslashreplace")
        os.write(2, data)


def write_files_for(rank: int, cause: Cause, text: str) -> None:
    """torchelastic's error file: the ranks that are the cause date theirs before the victims'."""
    later = 0 if cause.concerns(rank) else 1
    title = cause.title if not later else f"victim of {name_ranks(parse_ranks(cause.ranks))}: {cause.title}"
    write_error_file(title, text, time.time() + later)


def acknowledge(board: Board, rank: int) -> None:
    """Tell the node's other ranks that this one has said the cause."""
    with contextlib.suppress(OSError):
        board.post(f"ack-{rank}", {})


def continue_stopped(standings: Iterable[Standing]) -> None:
    """Let ranks of this host that a signal stopped run again, so that they can leave."""
    here = find_host()
    for each in standings:
        if each.state == "stopped" and each.host == here and each.pid > 1:
            with contextlib.suppress(OSError):
                os.kill(each.pid, signal.SIGCONT)


def linger(board: Board, peers: Peers, timeout_s: float = LINGER_S) -> None:
    """Wait until every other living rank of this node that waits has said the cause, or a short time.

    A launcher ends all ranks as soon as one of them has ended.
    """
    deadline_s = time.monotonic() + timeout_s
    others = [rank for rank in board.ranks() if rank != board.rank]
    asked_s = 0.0
    while time.monotonic() < deadline_s:
        others = [rank for rank in others if not board.has(f"ack-{rank}")]
        if time.monotonic() - asked_s > _ASK_S:  # reading what all say costs all ranks of a node much CPU
            others = [rank for rank in others if _will_say(board, peers, rank)]
            asked_s = time.monotonic()
        if not others:
            return
        time.sleep(0.01)


def _will_say(board: Board, peers: Peers, rank: int) -> bool:
    if not peers.is_alive(rank):
        return False
    standing = peers.read(rank)
    return standing is not None and standing.state in ("waiting", "raised")


def let_others_end(board: Board, peers: Peers, timeout_s: float = OTHERS_END_S) -> None:
    """After all ranks have left together: let those without an error end first, so that no launcher ends them."""
    board.post(f"last-{board.rank}", {})
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        others = [rank for rank in board.ranks() if rank != board.rank and not board.has(f"last-{rank}")]
        if not any(peers.is_there(rank) for rank in others):
            return
        time.sleep(0.02)


def remove_board(board: Board, peers: Peers, num_here: int) -> None:
    """Leave the node's board; the last of its ``num_here`` ranks removes it.

    Ranks that have not come yet must still find it, with what those before them said. What nobody removes, the
    watch of a later run does.
    """
    with contextlib.suppress(OSError):
        board.post(f"bye-{board.rank}", {})
        ranks = board.ranks()
        others = [rank for rank in ranks if rank != board.rank and not board.has(f"bye-{rank}")]
        complete = len(ranks) >= num_here
        board.close(remove=complete and not any(peers.is_there(rank) for rank in others))


def end(cause: Cause) -> NoReturn:
    """End this process as a rank that leaves because of another."""
    end_with(int(ExitCode.STALLED if cause.kind == STALLED else ExitCode.PEER_FAILED))


def end_with(code: int) -> NoReturn:
    """End this process; another thread may be anywhere, so that nothing is finalised."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            call_bounded(stream.flush, 0.2, "flush")
    os._exit(code)
