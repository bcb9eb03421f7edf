import os
import tempfile

import torch
import torch.distributed as dist

SNAPSHOT = os.path.join(tempfile.gettempdir(), "elastic-demo-snapshot.pt")


def restore(state):
    found = [None]
    if dist.get_rank() == 0 and os.path.exists(SNAPSHOT):
        found[0] = torch.load(SNAPSHOT)
    dist.broadcast_object_list(found, src=0)
    return found[0] or state


def main():
    dist.init_process_group("gloo")
    state = {"epoch": 0}
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    if restarts > 0:
        state = restore(state)
    for epoch in range(state["epoch"], 3):
        loss = torch.rand(1)
        dist.all_reduce(loss)
        state["epoch"] = epoch + 1
        if dist.get_rank() == 0:
            torch.save(state, SNAPSHOT + ".tmp")
            os.replace(SNAPSHOT + ".tmp", SNAPSHOT)
    dist.barrier()
    if dist.get_rank() == 0:
        os.remove(SNAPSHOT)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
