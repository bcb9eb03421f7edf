"""`init_process_group`: identity lines, a verified collective, two timeouts, and worlds of one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ..processes import Zygote

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("agent_store", [True, False])
def test_a_group_starts_with_its_ranks_named(zygote: Zygote, agent_store: bool) -> None:
    """Every process prints one line with rank, host, process and device; the timeout shrinks after a step."""
    timeouts = {"timeout": 7, "first_step_timeout": 70, "handshake_timeout": 30}
    ended = zygote.run("launching:start", ranks=2, agent_store=agent_store, timeouts=timeouts)
    assert ended.codes == [0, 0], ended.report()
    for rank, each in enumerate(ended.ranks):
        assert {"rank": rank, "size": 2, "seconds": [70, 7]} == json.loads(each.out.splitlines()[-1])
        lines = [line for line in each.err.splitlines() if line.startswith("spmdguard: rank")]
        assert len(lines) == 1
        assert lines[0].startswith(f"spmdguard: rank {rank} of 2, local rank {rank}, host ")
        assert lines[0].endswith(", device cpu")


def test_a_group_can_be_made_again(zygote: Zygote) -> None:
    """After the group was destroyed, another can be made over the same store, and works."""
    timeouts = {"timeout": 7, "first_step_timeout": 70, "handshake_timeout": 30}
    ended = zygote.run("launching:start", ranks=2, timeouts=timeouts, times=3)
    assert ended.codes == [0, 0], ended.report()
    assert [len(each.out.splitlines()) for each in ended.ranks] == [3, 3]


def test_the_ranks_learn_of_a_process_that_was_refused(zygote: Zygote) -> None:
    """A surplus process that comes after all ranks have met is named on every rank once the first step is done."""
    environments = [
        {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "SPMDGUARD_HOST": host}
        for rank, host in ((0, "a"), (1, "b"), (1, "c"))
    ]
    ended = zygote.run("launching:come_late", ranks=3, environments=environments, timeout=60.0)
    assert ended.codes == [0, 0, 1], ended.report()
    surplus = json.loads(ended[2].out)
    assert surplus["codes"] == ["surplus-process"]
    expected = (
        f"spmdguard: rank 1 (process {surplus['pid']} on host c) came after all ranks had met and was refused"
    )
    for each in ended.ranks[:2]:
        assert each.err.splitlines().count(expected) == 1, ended.report()


def test_after_the_first_step_a_hang_ends_soon(zygote: Zygote) -> None:
    """A collective after the first step times out after the short timeout, not the long one."""
    timeouts = {"timeout": 0.5, "first_step_timeout": 600, "handshake_timeout": 30}
    ended = zygote.run("launching:expire", ranks=2, timeouts=timeouts)
    assert ended[0].code == 0, ended.report()
    assert "500ms" in json.loads(ended[0].out)["error"]


def test_without_a_launcher_the_group_has_one_rank() -> None:
    """A script that is started alone gets a group of one rank."""
    program = (
        "import spmdguard, torch.distributed as d\n"
        "l = spmdguard.init_process_group('gloo')\n"
        "print(l.world_size, d.get_world_size())\nd.destroy_process_group()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "1 1", done.stderr


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"first_step_timeout": -1}, {"handshake_timeout": 0}, {"rank": 1}]
)
def test_bad_arguments_are_shown(options: dict[str, float]) -> None:
    """A timeout of nothing, or what the launcher says, is a ValueError that shows it."""
    import spmdguard

    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name if name == "rank" else str(value)):
        spmdguard.init_process_group("gloo", **options)  # type: ignore[arg-type]  # on purpose


def test_unknown_allowances_are_shown() -> None:
    """What nobody can allow is a ValueError that lists what can be allowed."""
    import spmdguard

    with pytest.raises(ValueError, match=r"allow holds \['colour'\], expected some of \['versions'"):
        spmdguard.handshake(allow=["colour"])


def test_simulated_ranks_start_their_group() -> None:
    """In a simulated world the same call makes the simulated group."""
    import torch.distributed as dist

    import spmdguard
    from spmdguard.testing import SimulatedWorld

    def start() -> int:
        spmdguard.init_process_group("gloo")
        return dist.get_world_size()

    assert list(SimulatedWorld(3, initialized=False).run(start)) == [3, 3, 3]
