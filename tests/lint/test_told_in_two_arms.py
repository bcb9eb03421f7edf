"""Broadcasts that each arm of a branch on the rank makes: what the root has sent, the others have received."""

from __future__ import annotations

from tests.lint.rules.marked import agree

PARTING = ("SPG101", "SPG102", "SPG103")


def test_what_both_arms_tell() -> None:
    """Tensors, boxes and items of lists, sent in one arm and received in the other."""
    assert agree(
        """
        import torch
        import torch.distributed as dist


        def a():
            while True:
                if dist.get_rank() == 0:
                    flag = torch.tensor([int(input())])
                    dist.broadcast(flag, 0)
                else:
                    flag = torch.zeros(1)
                    dist.broadcast(flag, 0)
                if flag.item():
                    return
                dist.barrier()


        def b():
            while True:
                if dist.get_rank() == 0:
                    box = [input()]
                    dist.broadcast_object_list(box)
                else:
                    box = [None]
                    dist.broadcast_object_list(box)
                if box[0]:
                    return
                dist.barrier()


        def c():
            while True:
                if dist.get_rank() == 0:
                    stop = input() == "x"
                    dist.broadcast_object_list([stop])
                else:
                    box = [None]
                    dist.broadcast_object_list(box)
                    stop = box[0]
                if stop:
                    return
                dist.barrier()

        def d():
            while True:
                if dist.get_rank() == 0:
                    stop = input() == "x"
                    box = [stop]
                    dist.broadcast_object_list(box)
                else:
                    box = [None]
                    dist.broadcast_object_list(box)
                    stop = box[0]
                if stop:
                    return
                dist.barrier()

        def e():
            while True:
                if dist.get_rank() == 0:
                    stop = input() == "x"
                    dist.broadcast(torch.tensor([stop]), 0)
                else:
                    box = torch.zeros(1)
                    dist.broadcast(box, 0)
                    stop = bool(box.item())
                if stop:
                    return
                dist.barrier()


        def f():
            while True:
                text, stop = "", False
                if dist.get_rank() == 0:
                    text = input()
                    if text == "stop":
                        stop = True
                    dist.broadcast_object_list([text, stop])
                else:
                    info = [text, stop]
                    dist.broadcast_object_list(info)
                    text, stop = info
                if stop:
                    return
                dist.barrier()
        """,
        *PARTING,
    )


def test_what_only_looks_told() -> None:
    """Something else than what was sent, a value that is changed afterwards, and broadcasts in another order."""
    assert agree(
        """
        import torch.distributed as dist


        def own_is_another(x):
            if dist.get_rank() == 0:
                stop = x > 1
                dist.broadcast_object_list([x])
            else:
                box = [None]
                dist.broadcast_object_list(box)
                stop = box[0]
            if stop:
                return  # SPG102
            dist.barrier()


        def changed(x):
            if dist.get_rank() == 0:
                dist.broadcast(x, 0)
                x = x + 1
            else:
                dist.broadcast(x, 0)
            if x.item():
                return  # SPG102
            dist.barrier()


        def crossed(x, y):
            if dist.get_rank() == 0:
                dist.broadcast(x, 0)
                dist.broadcast(y, 0)
            else:
                dist.broadcast(y, 0)
                dist.broadcast(x, 0)
            if x.item():
                return  # SPG102
            dist.barrier()


        def not_told(x):
            if dist.get_rank() == 0:
                stop = input() == "x"
                dist.broadcast_object_list([x])
            else:
                box = [None]
                dist.broadcast_object_list(box)
                stop = False
            if stop:
                return  # SPG102
            dist.barrier()
        """,
        *PARTING,
    )
