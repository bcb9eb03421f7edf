import os
import os.path as osp
import pickle
import shutil
import tempfile

import torch
import torch.distributed as dist


def get_dist_info():
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


@torch.no_grad()
def multi_gpu_test(model, data_loader, tmpdir=None):
    """Test a recognizer with several gpus; the ordered results are returned on rank 0."""
    model.eval()
    results = []
    for data in data_loader:
        results.extend(model(data["imgs"].cuda(non_blocking=True)).softmax(-1).cpu().numpy())
    return collect_results(results, len(data_loader.dataset), tmpdir)


def collect_results(part, size, tmpdir=None):
    rank, world_size = get_dist_info()
    if tmpdir is None:
        box = [None]
        if rank == 0:
            os.makedirs(".dist_test", exist_ok=True)
            box[0] = tempfile.mkdtemp(prefix="eval_", dir=".dist_test")
        dist.broadcast_object_list(box, src=0)
        tmpdir = box[0]
    else:
        os.makedirs(tmpdir, exist_ok=True)
    with open(osp.join(tmpdir, f"part_{rank}.pkl"), "wb") as f:
        pickle.dump(part, f)
    dist.barrier()
    if rank != 0:
        return None
    parts = []
    for i in range(world_size):
        with open(osp.join(tmpdir, f"part_{i}.pkl"), "rb") as f:
            parts.append(pickle.load(f))
    ordered = [r for group in zip(*parts) for r in group]
    shutil.rmtree(tmpdir)
    return ordered[:size]


def main(cfg, build_model, build_loader, evaluate):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.parallel.DistributedDataParallel(
        build_model(cfg).cuda(), device_ids=[torch.cuda.current_device()], broadcast_buffers=False
    )
    outputs = multi_gpu_test(model, build_loader(cfg, split="test"), cfg.get("tmpdir"))
    if dist.get_rank() == 0:
        print(evaluate(outputs))
    dist.barrier()
    dist.destroy_process_group()
