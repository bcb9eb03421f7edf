"""Values that are packed into bytes and taken out again."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

PROGRAM = """
    import json
    import pickle
    import struct
    from struct import pack, unpack
    import torch
    import torch.distributed as dist

    def run():
        pair = dist.get_rank(), dist.get_world_size()
        rank, world = PAIR
        if world > 1:
            dist.barrier()FIRST
        if rank > 0:
            dist.barrier()  # SPG101
"""


@pytest.mark.parametrize(
    "pair",
    [
        "struct.unpack('<ii', bytearray(struct.pack('<ii', *pair)))",
        "unpack('!2i', pack('!2i', pair[0], pair[1]))",
        "struct.unpack_from('=iq', memoryview(bytes(struct.pack('=iq', pair[0], pair[1]))))",
        "pickle.loads(pickle.dumps(pair))",
        "json.loads(json.dumps(pair))",
        "(int.from_bytes(one.to_bytes(4, 'little'), 'little') for one in pair)",
        "[int.from_bytes(pair[0].to_bytes(4, 'big'), 'big'), int.from_bytes(pair[1].to_bytes(4, 'big'), 'big')]",
    ],
)
def test_each_part_keeps_its_own_reasons(pair: str) -> None:
    """The world size beside the rank in one message of bytes is the same on every rank."""
    first = (
        "  # SPG101" if pair.startswith("(") else ""
    )  # known limit: parts of one generator are not told apart
    assert agree(PROGRAM.replace("PAIR", pair).replace("FIRST", first), "SPG101")


@pytest.mark.parametrize(
    "pair",
    [
        "struct.unpack('<ii', struct.pack('<hhi', *pair, 0))",
        "struct.unpack('<ii', struct.pack('<iii', *pair, 0)[:8])",
        "torch.tensor(pair).tolist()",
    ],
)
def test_known_limit_of_other_forms(pair: str) -> None:
    """Another format, a part of the bytes and tensors: any part may be the rank."""
    assert agree(PROGRAM.replace("PAIR", pair).replace("FIRST", "  # SPG101"), "SPG101")
