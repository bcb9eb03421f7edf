"""SPG110 on messages of coroutines: in which order they are sent and received."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_coroutines_in_a_list() -> None:
    """Coroutines that a list holds are awaited in an order of its own; those handed to ``gather`` run as written."""
    source = """
        import asyncio

        import torch
        import torch.distributed as dist

        async def pull(buffer, peer):
            dist.recv(buffer, src=peer)CODE

        async def push(buffer, peer):
            dist.send(buffer, dst=peer)

        async def swap(rank, mine, theirs, peer):
            BODY

        async def main():
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            await swap(rank, torch.ones(4), torch.zeros(4), rank ^ 1)
            dist.barrier()

        asyncio.run(main())
    """
    ordered = """moves = [pull(theirs, peer), push(mine, peer)]
            for move in moves if rank > peer else reversed(moves):
                await move"""
    swapped = """first, second = pull(theirs, peer), push(mine, peer)
            if rank > peer:
                first, second = second, first
            await first
            await second"""
    together = "await asyncio.gather(pull(theirs, peer), push(mine, peer))"
    in_turn = """await pull(theirs, peer)
            await push(mine, peer)"""
    for body, code in ((ordered, ""), (swapped, ""), (together, "  # SPG110"), (in_turn, "  # SPG110")):
        assert agree(source.replace("BODY", body).replace("CODE", code), "SPG110")
