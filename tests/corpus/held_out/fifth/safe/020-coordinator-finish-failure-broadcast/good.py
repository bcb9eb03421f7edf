import json
import os
import traceback
from typing import Any, Dict, Optional

import torch
import torch.distributed as dist


class SaveError(RuntimeError):
    pass


class ShardedSave:
    """Each rank writes its own file; the coordinator writes the index last."""

    coordinator = 0

    def __init__(self, folder: str, group: Optional[dist.ProcessGroup] = None):
        self.folder, self.group = folder, group
        self.rank = dist.get_rank(group)
        self.is_coordinator = self.rank == self.coordinator

    def _write_local(self, state: Dict[str, torch.Tensor]) -> Dict[str, Any]:
        try:
            os.makedirs(self.folder, exist_ok=True)
            name = f"shard_{self.rank}.pt"
            torch.save(state, os.path.join(self.folder, name))
            return {"file": name, "keys": sorted(state)}
        except Exception:
            return {"error": traceback.format_exc()}

    def save(self, state: Dict[str, torch.Tensor]) -> None:
        result = self._write_local(state)
        results = [None] * dist.get_world_size(self.group) if self.is_coordinator else None
        dist.gather_object(result, results, dst=self.coordinator, group=self.group)

        failures: Dict[int, str] = {}
        if self.is_coordinator:
            failures = {r: x["error"] for r, x in enumerate(results) if "error" in x}
            if not failures:
                try:
                    tmp = os.path.join(self.folder, ".index.tmp")
                    with open(tmp, "w") as f:
                        json.dump({x["file"]: x["keys"] for x in results}, f)
                    os.replace(tmp, os.path.join(self.folder, "index.json"))
                except OSError:
                    failures[self.rank] = traceback.format_exc()
        failed = torch.tensor([len(failures)], dtype=torch.int)
        dist.broadcast(failed, src=self.coordinator, group=self.group)
        if failed.item():
            raise SaveError(f"{failed.item()} ranks failed to write: {failures}")


def main():
    dist.init_process_group("gloo")
    params = {f"layer{i}.weight": torch.randn(64, 64) for i in range(24)}
    mine = {k: v for i, (k, v) in enumerate(params.items()) if i % dist.get_world_size() == dist.get_rank()}
    for step in (100, 200, 300):
        ShardedSave(f"/ckpt/step{step}").save(mine)
        if dist.get_rank() == 0:
            print("saved", step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
