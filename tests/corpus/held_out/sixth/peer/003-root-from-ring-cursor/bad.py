"""A ring of nodes; the head's owner hands out the plan."""
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Node:
    owner: int
    next: "Node | None" = None


def ring(size):
    head = Node(0)
    last = head
    for owner in range(1, size):
        last.next = Node(owner)
        last = last.next
    last.next = head
    return head


def seat(head, steps):
    cursor = head
    for _ in range(steps):
        cursor = cursor.next
    return cursor


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    head = ring(dist.get_world_size())
    mine = seat(head, rank)
    plan = torch.arange(6) if mine is head else torch.zeros(6, dtype=torch.int64)
    dist.broadcast(plan, src=mine.owner)
    print(rank, "after", mine.owner, "comes", mine.next.owner, plan.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
