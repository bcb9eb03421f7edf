import json
import os
from datetime import timedelta

import torch.distributed as dist


def open_store():
    host, lead = os.environ.get("MASTER_ADDR", "127.0.0.1"), dist.get_rank() == 0
    store, port = None, [None]
    if lead:
        store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
        port = [store.port]
    dist.broadcast_object_list(port, src=0)
    if not lead:
        store = dist.TCPStore(host, port[0], is_master=False, wait_for_workers=False)
    return store


def plan(store):
    if dist.get_rank() == 0:
        store.set("plan", json.dumps({"layers": [0, 3, 6]}))
    else:
        store.wait(["plan"], timedelta(seconds=30))
    return json.loads(store.get("plan"))


def main():
    dist.init_process_group("gloo")
    store = open_store()
    assert plan(store)["layers"][-1] == 6
    dist.barrier()  # rank 0 holds the server: stay until all have read
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
