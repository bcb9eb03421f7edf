"""Where a value goes, the reasons why it differs between ranks go with it: containers, calls, loops, classes.

Each body ends in a barrier that only some ranks reach. With the world size in place of the rank, all do.
"""

from __future__ import annotations

import re

import pytest
from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

HEAD = """import functools
import math
import torch
import torch.distributed as dist

def main(cfg):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    world = dist.get_world_size()
"""
BODIES = {
    "not items": "items = []\nif rank: items.append(1)\nif not items: dist.barrier()",
    "items": "items = []\nif rank: items.append(1)\nif items: dist.barrier()",
    "bool": "items = []\nif rank: items.append(1)\nif bool(items): dist.barrier()",
    "and": "items = []\nif rank: items.append(1)\nif cfg and items: dist.barrier()",
    "eq": "items = []\nif rank: items.append(1)\nif items == [1]: dist.barrier()",
    "len": "items = []\nif rank: items.append(1)\nif len(items) == 1: dist.barrier()",
    "in": "items = [rank]\nif 0 in items: dist.barrier()",
    "in2": "items = []\nitems.append(rank)\nif 0 in items: dist.barrier()",
    "sum": "items = [rank, 1]\nif sum(items) > 2: dist.barrier()",
    "max": "items = []\nitems.append(rank)\nif max(items) > 2: dist.barrier()",
    "any": "items = [rank == 0, False]\nif any(items): dist.barrier()",
    "all": "items = []\nitems.append(rank == 0)\nif all(items): dist.barrier()",
    "sorted": "items = [rank, 1]\nif sorted(items)[0] == 0: dist.barrier()",
    "tuple": "items = [rank, 1]\nif tuple(items) == (0, 1): dist.barrier()",
    "eqlist": "items = [rank, 1]\nif items == [0, 1]: dist.barrier()",
    "str": "items = [rank, 1]\nif str(items) == '[0, 1]': dist.barrier()",
    "fstr": "if f'{rank}' == '0': dist.barrier()",
    "dictval": "d = {'a': rank}\nif 0 in d.values(): dist.barrier()",
    "dictget": "d = {'a': rank}\nif d.get('a') == 0: dist.barrier()",
    "dictkey": "d = {rank: 1}\nif 0 in d: dist.barrier()",
    "dictkey2": "d = {}\nd[rank] = 1\nif 0 in d: dist.barrier()",
    "dictlen": "d = {}\nif rank: d['x'] = 1\nif len(d): dist.barrier()",
    "dictbool": "d = {}\nif rank: d['x'] = 1\nif d: dist.barrier()",
    "dictin": "d = {}\nif rank: d['x'] = 1\nif 'x' in d: dist.barrier()",
    "setin": "s = set()\nif rank: s.add(3)\nif 3 in s: dist.barrier()",
    "setin2": "s = {rank}\nif 0 in s: dist.barrier()",
    "pop": "items = [1, 2]\nif rank: items.pop()\nif len(items) == 2: dist.barrier()",
    "remove": "items = [1, 2]\nif rank: items.remove(1)\nif len(items) == 2: dist.barrier()",
    "clear": "items = [1, 2]\nif rank: items.clear()\nif items: dist.barrier()",
    "del": "items = [1, 2]\nif rank: del items[0]\nif len(items) == 2: dist.barrier()",
    "deld": "d = {'x': 1}\nif rank: del d['x']\nif 'x' in d: dist.barrier()",
    "slice": "items = [1, 2, 3][rank:]\nif len(items) == 2: dist.barrier()",
    "loop over": "items = [1] * rank\nfor i in items: dist.barrier()",
    "comp": "items = [k for k in range(3) if k > rank]\nif items: dist.barrier()",
    "comp2": "items = [k * rank for k in range(3)]\nif items[1] == 0: dist.barrier()",
    "gen": "if any(k == rank for k in range(2)): dist.barrier()",
    "next": "x = next(k for k in range(5) if k >= rank)\nif x == 1: dist.barrier()",
    "zip": "for a, b in zip(range(rank), range(3)): dist.barrier()",
    "enumerate": "for a, b in enumerate(range(rank)): dist.barrier()",
    "rev": "for a in reversed(range(rank)): dist.barrier()",
    "iter": "it = iter([rank, 1])\nif next(it) == 0: dist.barrier()",
    "map": "if list(map(lambda k: k + rank, [0]))[0] == 0: dist.barrier()",
    "filter": "if list(filter(lambda k: k > rank, [0, 1])): dist.barrier()",
    "join": "if ','.join([str(rank)]) == '0': dist.barrier()",
    "index": "if ['a', 'b', 'c'][rank] == 'a': dist.barrier()",
    "index2": "if (True, False)[rank % 2]: dist.barrier()",
    "dispatch": "flags = {0: True}\nif flags.get(rank, False): dist.barrier()",
    "dispatch2": "flags = {0: True, 1: False}\nif flags[rank]: dist.barrier()",
    "count": "items = [rank]\nif items.count(0): dist.barrier()",
    "idx": "items = [0, 1, 2]\nif items.index(rank) == 0: dist.barrier()",
    "bit": "if rank & 1: dist.barrier()",
    "neg": "if -rank == 0: dist.barrier()",
    "divmod": "a, b = divmod(rank, 2)\nif b: dist.barrier()",
    "round": "if round(rank / 2) == 0: dist.barrier()",
    "pow": "if 2 ** rank == 1: dist.barrier()",
    "minmax": "if min(rank, 1) == 1: dist.barrier()",
    "math": "if math.floor(rank / 2) == 0: dist.barrier()",
    "is": "x = True if rank else None\nif x is True: dist.barrier()",
    "walrus": "if (x := rank) > 0: pass\nif x: dist.barrier()",
    "chain": "if 0 < rank < 2: dist.barrier()",
    "aug": "x = 0\nx += rank\nif x: dist.barrier()",
    "augl": "items = []\nitems += [1] * rank\nif items: dist.barrier()",
    "augfield": "class C: pass\nc = C()\nc.x = 0\nc.x += rank\nif c.x: dist.barrier()",
    "nested list": "items = [[rank]]\nif items[0][0] == 0: dist.barrier()",
    "alias": "a = []\nb = a\nif rank: b.append(1)\nif a: dist.barrier()",
    "alias2": "a = {}\nb = {'in': a}\nif rank: b['in']['k'] = 1\nif a: dist.barrier()",
    "list arg": "def add(l):\n    if rank: l.append(1)\nitems = []\nadd(items)\nif items: dist.barrier()",
    "list arg2": "def add(l, r):\n    if r: l.append(1)\nitems = []\nadd(items, rank)\nif len(items): dist.barrier()",
    "while": "n = rank\nwhile n > 0:\n    n -= 1\n    dist.barrier()",
    "whilelist": "items = [1] * rank\nwhile items:\n    items.pop()\n    dist.barrier()",
    "extend": "items = []\nif rank: items.extend([1])\nif items: dist.barrier()",
    "setdef": "d = {}\nif rank: d.setdefault('k', 1)\nif 'k' in d: dist.barrier()",
    "update": "d = {}\nif rank: d.update(k=1)\nif 'k' in d: dist.barrier()",
    "update2": "d = {'k': 0}\nd.update(k=rank)\nif d['k']: dist.barrier()",
    "dictcomp": "d = {k: rank for k in 'ab'}\nif d['a'] == 0: dist.barrier()",
    "starargs": "def f(*a):\n    return a[0]\nif f(rank): dist.barrier()",
    "kwargs": "def f(**k):\n    return k['r']\nif f(r=rank): dist.barrier()",
    "defaults": "def f(r=rank):\n    return r\nif f(): dist.barrier()",
    "lambda": "f = lambda: rank == 0\nif f(): dist.barrier()",
    "closure": "def f():\n    return rank == 0\nif f(): dist.barrier()",
    "partial": "f = functools.partial(max, rank)\nif f(0): dist.barrier()",
    "ternlist": "items = [1] if rank else []\nif items: dist.barrier()",
    "ternlist2": "items = [1] if rank else []\nif not items: dist.barrier()",
    "ternlist3": "items = [1] if rank else []\nif len(items): dist.barrier()",
    "emptydefault": "name = '' if rank else 'x'\nif name: dist.barrier()",
    "strmethod": "name = str(rank)\nif name.startswith('0'): dist.barrier()",
    "unpack star": "a, *b = [1] + [2] * rank\nif b: dist.barrier()",
    "isinst": "x = 1 if rank else 'a'\nif isinstance(x, int): dist.barrier()",
    "forelse": "for k in range(3):\n    if k == rank: break\nelse:\n    dist.barrier()",
    "found": "hit = 0\nfor k in range(2):\n    if k == rank:\n        hit = 1\n        break\nif hit: dist.barrier()",
    "loopcount": "n = 0\nfor k in range(3):\n    if k == rank: break\n    n += 1\nif n == 2: dist.barrier()",
    "loopvar": "for k in range(3):\n    if k == rank: break\nif k == 1: dist.barrier()",
    "match": "match rank:\n    case 0: x = 1\n    case _: x = 2\nif x == 1: dist.barrier()",
    "global": "global G\nG = rank\nif G: dist.barrier()",
    "getattr": "class C:\n    pass\nC.r = rank\nif C.r: dist.barrier()",
    "clsattr": "class C:\n    r = rank\nif C.r: dist.barrier()",
    "setattr": "class C:\n    pass\nc = C()\nsetattr(c, 'r', rank)\nif c.r: dist.barrier()",
    "getattr2": "class C:\n    pass\nc = C()\nc.r = rank\nif getattr(c, 'r'): dist.barrier()",
    "torch": "t = torch.tensor([rank])\nif t.item(): dist.barrier()",
    "torch2": "t = torch.zeros(1)\nt += rank\nif t.item(): dist.barrier()",
    "torch3": "t = torch.zeros(1)\nt[0] = rank\nif t.item(): dist.barrier()",
    "torch4": "t = torch.zeros(1)\nt.fill_(rank)\nif t.item(): dist.barrier()",
    "reduce": "t = torch.tensor([rank])\ndist.reduce(t, dst=0)\nif t.item(): dist.barrier()",
    "scatter": "o = [None]\ndist.scatter_object_list(o, [1, 2], src=0)\nif o[0] == 1: dist.barrier()",
    "cloned": "t = torch.tensor([rank])\nu = t.clone()\ndist.all_reduce(t)\nif u.item(): dist.barrier()",
}
GIVES_OTHERS = {"reduce", "scatter"}  # what the collective leaves is each rank's own, whatever goes in


def parts(body: str) -> bool:
    """Whether the linter says that ranks part ways."""
    source = HEAD + "".join(f"    {line}\n" for line in body.split("\n")) + "\nmain(1)\n"
    findings = lint((), Config(), stdin=StandardInput(source.encode(), "snippet.py")).findings
    return any(finding.code[3] in "1234" for finding in findings)


@pytest.mark.parametrize("name", BODIES)
def test_the_rank_is_followed(name: str) -> None:
    """A barrier under a condition that stems from the rank is reported."""
    assert parts(BODIES[name])


@pytest.mark.parametrize("name", sorted(set(BODIES) - GIVES_OTHERS))
def test_the_world_size_is_no_reason(name: str) -> None:
    """The same code parts nobody when all ranks have the same number."""
    assert not parts(re.sub(r"\brank\b", "world", BODIES[name]))
