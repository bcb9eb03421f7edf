"""Handles of begun operations: they let other ranks run until the operation is done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch._C import _distributed_c10d

from spmdguard.testing.matching import Meeting, Transfer
from spmdguard.testing.meetings import Meetings
from spmdguard.testing.ranks import SimulatedRank

_c_api: Any = _distributed_c10d


def _future(results: list[Tensor]) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(results)
    return future


FINISHED: Any = _c_api._create_work_from_future(_future([]))


class SimulatedWork(_c_api.Work):  # type: ignore[misc]  # torch's stub differs between versions
    """A begun operation of one rank. Asking for its future waits, since nothing runs beside the ranks."""

    def __init__(
        self, meetings: Meetings, me: SimulatedRank, meeting: Meeting, results: list[Tensor]
    ) -> None:
        super().__init__()
        self._meetings = meetings
        self._me = me
        self._meeting = meeting
        self._results = results
        me.works.add(self)  # C++ that holds only its own half would lose this one

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._meetings.finish(self._me, self._meeting)
        self._me.works.discard(self)
        return True

    def is_completed(self) -> bool:
        if not self._meeting.done and self._meeting.failure is None:
            self._meetings.poll(self._me)
        return self._meeting.done or self._meeting.failure is not None

    def is_success(self) -> bool:
        return self._meeting.done

    def exception(self) -> Any:
        return self._meeting.failure

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[Tensor]:
        return self._results

    def get_future(self) -> Any:
        self.wait()
        return _future(self._results)

    def source_rank(self) -> int:
        """The group rank that sent, after a receive."""
        sender = self._meeting.sender if isinstance(self._meeting, Transfer) else None
        return self._meeting.group.index[(sender or self._me).number]

    _source_rank = source_rank
