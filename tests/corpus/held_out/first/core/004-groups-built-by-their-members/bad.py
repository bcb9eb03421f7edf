from __future__ import annotations

import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Role:
    name: str
    ranks: tuple[int, ...]


@dataclass
class Layout:
    roles: list[Role]
    groups: dict[str, dist.ProcessGroup] = field(default_factory=dict)

    @classmethod
    def from_counts(cls, **counts: int) -> Layout:
        roles, first = [], 0
        for name, count in counts.items():
            roles.append(Role(name, tuple(range(first, first + count))))
            first += count
        return cls(roles)

    def materialize(self) -> Layout:
        me = dist.get_rank()
        for role in self.roles:
            if me not in role.ranks:
                continue
            self.groups[role.name] = dist.new_group(list(role.ranks))
        return self

    def mine(self) -> str:
        me = dist.get_rank()
        return next(r.name for r in self.roles if me in r.ranks)


def step(module: torch.nn.Module, group: dist.ProcessGroup, x: torch.Tensor) -> float:
    module.zero_grad()
    loss = module(x).square().mean()
    loss.backward()
    for p in module.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= dist.get_world_size(group)
        p.data -= 0.01 * p.grad
    return loss.item()


def main() -> None:
    dist.init_process_group(os.environ.get("BACKEND", "gloo"))
    world = dist.get_world_size()
    vision = max(1, world // 3)
    layout = Layout.from_counts(vision=vision, language=world - vision).materialize()
    role = layout.mine()
    module = torch.nn.Linear(48 if role == "vision" else 96, 24)
    for _ in range(10):
        step(module, layout.groups[role], torch.randn(4, module.in_features))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
