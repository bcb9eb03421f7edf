import os
from pathlib import Path
import datasets
import torch.distributed as dist


def fs_rank():
    return int(os.environ.get("FS_LOCAL_RANK", os.environ["RANK"]))


def load_task_set(path, name, split, store):
    local = Path(store) / path.replace("/", "_") / (name or "none") / split
    if fs_rank() == 0 and not local.is_dir():
        remote = datasets.load_dataset(path, name, split=split)
        remote.save_to_disk(str(local))
    dist.barrier()
    return datasets.load_from_disk(str(local))


def build_tasks(specs, store):
    tasks = {}
    for label, (path, name, split) in specs.items():
        tasks[label] = load_task_set(path, name, split, store)
    return tasks


def main(specs, store, evaluate_all):
    dist.init_process_group("gloo")
    tasks = build_tasks(specs, store)
    scores = evaluate_all(tasks)
    if dist.get_rank() == 0:
        print(scores)
    dist.destroy_process_group()
