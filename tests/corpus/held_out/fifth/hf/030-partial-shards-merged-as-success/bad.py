import argparse
import json
import logging
import sys
from pathlib import Path

import torch
from torch import distributed as dist

log = logging.getLogger("closed_loop")


def simulate(planner, scene: dict, horizon: int) -> dict:
    state = scene["initial"]
    collided = False
    for t in range(horizon):
        state = planner.step(state, scene["map"])
        collided = collided or state["collision"]
    return {"id": scene["id"], "collision": collided, "progress": state["progress"]}


def run_jobs(planner, scenes, out: Path, horizon: int) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    with open(out / f"part_{rank}.jsonl", "w") as f:
        for scene in scenes[rank::world]:
            f.write(json.dumps(simulate(planner, scene, horizon)) + "\n")
            f.flush()


def merge(out: Path, world: int) -> dict:
    rows = []
    for r in range(world):
        part = out / f"part_{r}.jsonl"
        if not part.exists():
            raise FileNotFoundError(part)
        rows += [json.loads(line) for line in part.read_text().splitlines()]
    return {
        "scenes": len(rows),
        "collision_rate": sum(r["collision"] for r in rows) / max(len(rows), 1),
        "mean_progress": sum(r["progress"] for r in rows) / max(len(rows), 1),
    }


def evaluate(planner, scenes, out: Path, horizon: int) -> None:
    try:
        run_jobs(planner, scenes, out, horizon)
    except Exception:
        log.exception("rank %d failed", dist.get_rank())
    dist.barrier()
    if dist.get_rank() == 0:
        summary = merge(out, dist.get_world_size())
        (out / "summary.json").write_text(json.dumps(summary, indent=2))
        log.info("collision rate %.4f over %d scenes", summary["collision_rate"], summary["scenes"])
    dist.barrier()


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--scenes", type=Path, required=True)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--out", type=Path, default=Path("closed_loop"))
    ap.add_argument("--horizon", type=int, default=80)
    args = ap.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)

    from planner import load_planner

    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    args.out.mkdir(parents=True, exist_ok=True)
    scenes = json.loads(args.scenes.read_text())
    evaluate(load_planner(args.checkpoint), scenes, args.out, args.horizon)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
