from dataclasses import dataclass, field

import torch
from accelerate import Accelerator


@dataclass
class Scores:
    accelerator: Accelerator
    rows: list = field(default_factory=list)

    def add(self, reward: float, length: int) -> None:
        self.rows.append((reward, float(length)))

    def _means(self) -> torch.Tensor:
        mine = torch.tensor(self.rows, device=self.accelerator.device).mean(0, keepdim=True)
        return self.accelerator.gather(mine).mean(0)

    def render(self, update: int) -> str:
        reward, length = self._means().tolist()
        self.rows.clear()
        return f"{update:>6} | {reward:8.3f} | {length:7.1f}"


def learn(agent, envs, updates: int, every: int = 10) -> None:
    accelerator = Accelerator()
    agent.policy, agent.optimizer = accelerator.prepare(agent.policy, agent.optimizer)
    board = Scores(accelerator)
    for update in range(1, updates + 1):
        rollout = agent.collect(envs)
        board.add(rollout.reward, rollout.length)
        accelerator.backward(agent.loss(rollout))
        agent.optimizer.step()
        agent.optimizer.zero_grad()
        if update % every == 0 and accelerator.is_main_process:
            print(board.render(update))
