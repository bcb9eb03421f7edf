"""What collectives do to tensors, all ranks at once: payloads in group order in, results written in place.

Each function is run by the rank that comes last. It returns what is wrong with the shapes, or None.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, distributed

_KINDS: Any = distributed.ReduceOp.RedOpType
_NAMES: dict[int, str] = {int(kind): name.lower() for name, kind in _KINDS.__members__.items()}
_SIMPLE: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda stacked: stacked.sum(0, dtype=stacked.dtype),
    "avg": lambda stacked: stacked.mean(0),
    "product": lambda stacked: stacked.prod(0, dtype=stacked.dtype),
    "min": lambda stacked: stacked.amin(0),
    "max": lambda stacked: stacked.amax(0),
}
_BITWISE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}


def kind_of_reduction(op: Any) -> str:
    """``"sum"`` for ``ReduceOp.SUM``, which torch hashes to its number; comparing the objects costs 1 us a time."""
    return _NAMES[hash(op)]


def reduce_all(tensors: Sequence[Tensor], kind: str) -> Tensor:
    """The reduction over ranks, in rank order on every run."""
    if kind in _SIMPLE:
        return _SIMPLE[kind](torch.stack(list(tensors)))
    if kind in _BITWISE:
        result = tensors[0].clone()
        for tensor in tensors[1:]:
            result = _BITWISE[kind](result, tensor)
        return result
    raise NotImplementedError(f"SimulatedWorld does not simulate the reduction {kind!r}")


@functools.cache
def make_all_reduce(kind: str) -> Callable[[list[Any]], str | None]:
    """Payload: the tensors of one rank."""

    def all_reduce(payloads: list[list[Tensor]]) -> str | None:
        for column in zip(*payloads, strict=True):
            torch._foreach_copy_(column, [reduce_all(column, kind)] * len(column))
        return None

    return all_reduce


def make_reduce(kind: str, root: int) -> Callable[[list[Any]], str | None]:
    """Payload: the tensors of one rank."""

    def reduce(payloads: list[list[Tensor]]) -> str | None:
        for column in zip(*payloads, strict=True):
            column[root].copy_(reduce_all(column, kind))
        return None

    return reduce


@functools.cache
def make_broadcast(root: int) -> Callable[[list[Any]], str | None]:
    """Payload: the tensors of one rank."""

    def broadcast(payloads: list[list[Tensor]]) -> str | None:
        for column in zip(*payloads, strict=True):
            torch._foreach_copy_(column, [column[root]] * len(column))
        return None

    return broadcast


def _copy(source: Tensor, target: Tensor, sender: int, receiver: int) -> str | None:
    if source.numel() != target.numel() or source.dtype != target.dtype:
        return (
            f"group rank {sender} gives {_describe(source)}, group rank {receiver} "
            f"expects {_describe(target)} from it"
        )
    target.copy_(source.view_as(target) if source.is_contiguous() else source.reshape(target.shape))
    return None


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def all_to_all(payloads: list[tuple[list[Tensor], list[Tensor]]]) -> str | None:
    """Payload: outputs by source, inputs by target."""
    inputs = [[tensor.clone() for tensor in given] for _, given in payloads]
    for receiver, (outputs, _) in enumerate(payloads):
        for sender, target in enumerate(outputs):
            wrong = _copy(inputs[sender][receiver], target, sender, receiver)
            if wrong is not None:
                return wrong
    return None


def all_gather(payloads: list[tuple[list[Tensor], Tensor]]) -> str | None:
    """Payload: outputs by source (empty on ranks that get nothing), own input."""
    inputs = [given.clone() for _, given in payloads]
    for receiver, (outputs, _) in enumerate(payloads):
        for sender, target in enumerate(outputs):
            wrong = _copy(inputs[sender], target, sender, receiver)
            if wrong is not None:
                return wrong
    return None


def make_scatter(root: int) -> Callable[[list[Any]], str | None]:
    """Payload: own output, inputs by target (on the root only)."""

    def scatter(payloads: list[tuple[Tensor, list[Tensor]]]) -> str | None:
        inputs = payloads[root][1]
        for receiver, (target, _) in enumerate(payloads):
            wrong = _copy(inputs[receiver], target, root, receiver)
            if wrong is not None:
                return wrong
        return None

    return scatter


def make_reduce_scatter(kind: str) -> Callable[[list[Any]], str | None]:
    """Payload: own output, inputs by target."""

    def reduce_scatter(payloads: list[tuple[Tensor, list[Tensor]]]) -> str | None:
        columns = [list(column) for column in zip(*(inputs for _, inputs in payloads), strict=True)]
        reduced = [reduce_all(column, kind) for column in columns]
        for receiver, (target, _) in enumerate(payloads):
            wrong = _copy(reduced[receiver], target, receiver, receiver)
            if wrong is not None:
                return wrong
        return None

    return reduce_scatter


def equal_parts(tensor: Tensor, num_ranks: int) -> list[Tensor]:
    """One part for each rank, views of ``tensor``; parts may be empty.

    Raises:
        ValueError: the number of elements does not divide evenly.
    """
    size, rest = divmod(tensor.numel(), num_ranks)
    if rest:
        raise ValueError(f"{_describe(tensor)} cannot be divided evenly among {num_ranks} ranks")
    flat: Any = tensor.view(-1) if tensor.is_contiguous() else tensor.reshape(-1)
    return list(flat.split(size)) if size else [flat] * num_ranks


def split(tensor: Tensor, sizes: list[int] | None, num_ranks: int) -> list[Tensor]:
    """Parts along dimension 0: of ``sizes``, or equal ones.

    Raises:
        ValueError: without sizes, where dimension 0 does not divide evenly.
    """
    whole: Any = tensor  # torch leaves Tensor.split without types
    if sizes:
        return list(whole.split(list(sizes)))
    size, rest = divmod(tensor.shape[0], num_ranks)
    if rest:
        raise ValueError(f"dimension 0 of {_describe(tensor)} cannot be divided among {num_ranks} ranks")
    return list(whole.split(size)) if size else [tensor] * num_ranks


def do_nothing(payloads: list[Any]) -> str | None:
    """A barrier has no data."""
    return None


def transfer(sent: list[Tensor], received: list[Tensor]) -> str | None:
    """From the sender's tensors to the receiver's."""
    for source, target in zip(sent, received, strict=True):
        if source.numel() != target.numel() or source.dtype != target.dtype:
            return f"send of {_describe(source)} meets recv of {_describe(target)}"
        target.copy_(source.reshape(target.shape))
    return None
