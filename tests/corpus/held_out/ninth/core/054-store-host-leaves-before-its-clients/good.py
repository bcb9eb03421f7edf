"""Share out simulation jobs through a TCP store; no collectives needed."""
import json
import os
import time
from datetime import timedelta

import torch.distributed as dist


def simulate(seeds):
    time.sleep(0.3 * len(seeds))
    return {str(s): (s * 37 % 101) / 101 for s in seeds}


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ.get("JOB_STORE_PORT", 29655)), world,
        is_master=rank == 0, timeout=timedelta(seconds=60))
    if rank == 0:
        seeds = list(range(30))
        share = [seeds[: 2]] + [seeds[2 + r - 1:: world - 1] for r in range(1, world)]
        for r in range(world):
            store.set(f"seeds/{r}", json.dumps(share[r]))
    mine = json.loads(store.get(f"seeds/{rank}"))
    result = simulate(mine)
    store.set(f"result/{rank}", json.dumps(result))
    if rank == 0:
        print("rank 0 simulated", len(result), "seeds")
        store.wait([f"left/{r}" for r in range(1, world)], timedelta(minutes=10))
        return  # the others need the store no more
    store.wait([f"result/{rank}"])
    print(f"rank {rank} handed in {len(result)} results")
    store.set(f"left/{rank}", "1")


if __name__ == "__main__":
    main()
