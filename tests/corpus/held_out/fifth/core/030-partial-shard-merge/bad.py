import json
import logging
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn

log = logging.getLogger("closed_loop")


class Planner(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, 2))

    @torch.no_grad()
    def rollout(self, state, steps=80):
        path = []
        for _ in range(steps):
            delta = self.net(state)
            state = torch.cat([state[2:], delta])
            path.append(state[-2:].cumsum(0))
        return torch.stack(path)


def simulate(planner, scenario):
    state = torch.tensor(scenario["state"], dtype=torch.float32)
    path = planner.rollout(state)
    if not torch.isfinite(path).all():
        raise FloatingPointError(f"scenario {scenario['id']}: trajectory is not finite")
    return {"id": scenario["id"], "progress": path[-1].norm().item()}


def run_shard(planner, scenarios, out_file):
    with out_file.open("w") as f:
        for scenario in scenarios:
            f.write(json.dumps(simulate(planner, scenario)) + "\n")
            f.flush()


def merge(folder, world):
    rows = []
    for rank in range(world):
        shard = folder / f"shard{rank}.jsonl"
        if not shard.exists():
            raise FileNotFoundError(shard)
        rows += [json.loads(line) for line in shard.read_text().splitlines()]
    mean = sum(r["progress"] for r in rows) / max(len(rows), 1)
    (folder / "summary.json").write_text(json.dumps({"n": len(rows), "progress": mean}))
    log.info("merged %d scenarios, mean progress %.3f", len(rows), mean)


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    folder = Path(os.environ.get("OUT", "closed_loop"))
    folder.mkdir(parents=True, exist_ok=True)
    scenarios = json.loads(Path(os.environ["SCENARIOS"]).read_text())[rank::world]
    planner = Planner()
    planner.load_state_dict(torch.load(os.environ["WEIGHTS"], map_location="cpu"))
    try:
        run_shard(planner, scenarios, folder / f"shard{rank}.jsonl")
    except Exception:
        log.exception("rank %d could not finish its scenarios", rank)
    dist.barrier()
    if rank == 0:
        merge(folder, world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
