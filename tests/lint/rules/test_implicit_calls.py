"""What Python calls by itself (texts of objects), and calls whose arguments the rank chooses behind a star."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

METER = """
    import torch
    import torch.distributed as dist

    class Meter:
        def __init__(self):
            self.total = torch.zeros(1)

        def compute(self):
            mean = self.total.clone()
            dist.all_reduce(mean)
            return mean.item()

        def SPECIAL
            return REPLY

    def report(meter, step):
        mean = meter.compute()
        if dist.get_rank() == 0:
            print(f"{step} {mean:.3f}", "{}".format(mean), "%s" % mean, str(mean))

    def log(step):
        meter = Meter()
        if dist.get_rank() == 0:
            TEXT  # SPG104
"""


@pytest.mark.parametrize(
    ("special", "reply", "text"),
    [
        ("__format__(self, spec):", "format(self.compute(), spec)", 'print(f"{step} {meter:.3f}")'),
        ("__format__(self, spec):", "format(self.compute(), spec)", 'print("{}".format(meter))'),
        ("__format__(self, spec):", "format(self.compute(), spec)", 'print(format(meter, ".3f"))'),
        ("__str__(self):", "str(self.compute())", 'print(f"{meter}")'),
        ("__str__(self):", "str(self.compute())", 'print(f"{meter!s}")'),
        ("__str__(self):", "str(self.compute())", "print(step, meter)"),
        ("__str__(self):", "str(self.compute())", 'print("%d: %s" % (step, meter))'),
        ("__str__(self):", "str(self.compute())", "text = str(meter)"),
        ("__repr__(self):", "repr(self.compute())", 'print(f"{meter!r}", step)'),
        ("__repr__(self):", "repr(self.compute())", 'print(f"{meter=}", step)'),
        ("__float__(self):", "float(self.compute())", "value = float(meter)"),
        ("__int__(self):", "int(self.compute())", "value = int(meter)"),
    ],
)
def test_text_of_an_object(special: str, reply: str, text: str) -> None:
    """A class whose text or number is made by a collective, asked for on one rank."""
    source = METER.replace("SPECIAL", special).replace("REPLY", reply)
    assert agree(source.replace("TEXT", text), "SPG104")


@pytest.mark.parametrize(
    "text", ['print(f"{meter.total}")', "print(step)", 'print(f"{meter!r}")', "repr(meter)"]
)
def test_other_texts(text: str) -> None:
    """Another method is asked, or another value."""
    source = METER.replace("SPECIAL", "__str__(self):").replace("REPLY", "str(self.compute())")
    assert agree(source.replace("TEXT  # SPG104", text), "SPG104")


STARS = """
    import torch.distributed as dist

    class Actor:
        def __init__(self):
            self.rank = dist.get_rank()
            self.even = dist.new_group([0, 2])
            self.odd = dist.new_group([1, 3])

        def scope(self):
            SCOPE

        def meet(self):
            fence("round", *self.scope())CODE

    def fence(label, *where):
        dist.barrier(*where)
        return label

    def run(rounds):
        actor = Actor()
        for _ in range(rounds):
            actor.meet()
"""


@pytest.mark.parametrize(
    "scope",
    [
        "return (self.odd,) if self.rank % 2 else ()",
        "return () if self.rank % 2 == 0 else (self.odd,)",
        "if self.rank % 2:\n                return (self.odd,)\n            return ()",
    ],
)
def test_arguments_behind_a_star(scope: str) -> None:
    """On some ranks the star gives a group, on the others nothing, so that they meet all."""
    assert agree(STARS.replace("SCOPE", scope).replace("CODE", "  # SPG105"), "SPG105")


@pytest.mark.parametrize(
    "scope",
    [
        "return (self.odd,) if self.rank % 2 else (self.even,)",
        "return ()",
        "return (self.odd,) if DEBUG else ()",
    ],
)
def test_right_arguments_behind_a_star(scope: str) -> None:
    """Each rank's own group, no group at all, and a choice that is the same everywhere."""
    assert agree(STARS.replace("SCOPE", scope).replace("CODE", ""), "SPG101", "SPG103", "SPG104", "SPG105")
