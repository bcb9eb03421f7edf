import json
import os
from datetime import timedelta

import torch.distributed as dist

KEY = "settings"


def share_settings(store, rank):
    if rank == 0:
        store.set(KEY, json.dumps({"lr": 0.1, "layers": 3}))
        return {"lr": 0.1, "layers": 3}
    store.wait([KEY], timedelta(seconds=30))
    return json.loads(store.get(KEY))


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    port = int(os.environ["MASTER_PORT"]) + 1
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port, world, is_master=rank == 0)
    settings = share_settings(store, rank)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    assert settings["layers"] == 3
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
