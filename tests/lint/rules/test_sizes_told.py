"""Broadcasts that are left out for empty tensors: by the root, and by those who hear, or not."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG103", "SPG305")
PROGRAM = """
        import torch
        import torch.distributed as dist

        def share(tensors, leader):
            if dist.get_rank() == {leader}:
                dist.broadcast_object_list([[t.shape for t in tensors]], src={leader}){found}
                for t in tensors:
                    if {root}:
                        dist.broadcast(t, src={leader})
                return tensors
            shapes, out = [None], []
            dist.broadcast_object_list(shapes, src={leader})
            for shape in shapes[0]:
                buffer = torch.empty(shape)
                {heard}
                out.append(buffer)
            return out

        class Bridge:
            def __init__(self, members):
                self.rank, self.leader, self.group = dist.get_rank(), members[0], dist.new_group(members)

            def receive(self):
                box = [None]
                dist.recv_object_list(box, src=0)
                found = []
                for shape in box[0]:
                    buffer = torch.empty(shape)
                    dist.recv(buffer, src=0)
                    found.append(buffer)
                return found

            def run(self):
                if self.rank == self.leader:
                    tensors = self.receive()
                    dist.broadcast_object_list([[t.shape for t in tensors]], src=self.leader, group=self.group)
                    for t in tensors:
                        if {root}:
                            dist.broadcast(t, src=self.leader, group=self.group){own}
                else:
                    shapes = [None]
                    dist.broadcast_object_list(shapes, src=self.leader, group=self.group)
                    for shape in shapes[0]:
                        buffer = torch.empty(shape)
                        {heard_too}
"""
ROOTS = ("t.numel()", "t.numel() > 0", "t.shape[0] != 0", "len(t) > 0")
SEND, SEND_TOO = "dist.broadcast(buffer, src={})", "dist.broadcast(buffer, src=self.leader, group=self.group)"


def _program(root: str, leader: str, heard: str, found: str, own: str) -> str:
    return PROGRAM.format(
        leader=leader,
        root=root,
        heard=heard + SEND.format(leader),
        heard_too=heard + SEND_TOO,
        found=found,
        own=own,
    )


def test_those_who_hear_ask_the_same() -> None:
    """The size of the tensor is asked in the same words on both sides."""
    for root in ROOTS:
        for leader in ("0", "leader"):
            heard = root.replace("t.", "buffer.").replace("(t)", "(buffer)")
            assert agree(_program(root, leader, f"if {heard}: ", "", ""), *RULES)


def test_those_who_hear_ask_nothing_or_something_else() -> None:
    """Always heard, heard by another size, by the contents, or where a longer tensor is sent."""
    for heard in (
        "",
        "if buffer.dim(): ",
        "if buffer.sum(): ",
        "if buffer.numel() > 1: ",
        "if box_is_full: ",
    ):
        for leader in ("0", "leader"):
            program = _program("t.numel()", leader, heard, "  # SPG101", "  # SPG305")
            assert agree(program, *RULES)
