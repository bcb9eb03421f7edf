import os
import shutil
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner


class BucketReader(FileSystemReader):
    """Copies only those shard files that the local plan needs, then reads them as usual."""

    def __init__(self, bucket: str, scratch: str, first_replica: bool):
        self.bucket, self.scratch, self.first_replica = Path(bucket), Path(scratch), first_replica
        self.scratch.mkdir(parents=True, exist_ok=True)
        if int(os.environ["LOCAL_RANK"]) == 0:
            shutil.copy2(self.bucket / ".metadata", self.scratch / ".metadata")
        dist.barrier()
        super().__init__(str(self.scratch))

    def _needed(self, plan: LoadPlan) -> set:
        return {self.storage_data[item.storage_index].relative_path for item in plan.items}

    def read_data(self, plan: LoadPlan, planner: LoadPlanner):
        rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
        mine = self._needed(plan)
        wanted = [None] * dist.get_world_size()
        dist.all_gather_object(wanted, mine)

        failed = 0
        if self.first_replica:
            try:
                for name in mine:
                    if any(name in wanted[r] for r in range(rank - local, rank)):
                        continue  # a lower rank of this node takes it
                    shutil.copy2(self.bucket / name, self.scratch / name)
            except OSError as err:
                print(f"[rank {rank}] download failed: {err}", flush=True)
                failed = 1

        flags = [torch.zeros(1, dtype=torch.int32, device="cuda") for _ in wanted]
        dist.all_gather(flags, torch.tensor([failed], dtype=torch.int32, device="cuda"))
        bad = [r for r, f in enumerate(flags) if f.item()]
        if bad:
            raise RuntimeError(f"ranks {bad} could not download their shards")
        dist.barrier()
        return super().read_data(plan, planner)


def main():
    import torch.distributed.checkpoint as dcp

    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.Linear(64, 64).cuda()
    state = {"model": model.state_dict()}
    dcp.load(state, storage_reader=BucketReader("/mnt/bucket/step100", "/scratch/step100", True))
    model.load_state_dict(state["model"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
