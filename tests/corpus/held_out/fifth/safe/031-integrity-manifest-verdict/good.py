import argparse
import hashlib
import json
import os

import torch
import torch.distributed as dist


class CorruptCheckpoint(RuntimeError):
    pass


def sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _verify(folder: str) -> int:
    try:
        with open(os.path.join(folder, "integrity.json")) as f:
            manifest = json.load(f)
    except (OSError, ValueError) as err:
        raise CorruptCheckpoint(f"no usable manifest in {folder}: {err}") from err
    bad = []
    for name, want in manifest.items():
        try:
            if sha256(os.path.join(folder, name)) != want:
                bad.append(f"{name}: hash differs")
        except OSError as err:
            bad.append(f"{name}: {err}")
    if bad:
        raise CorruptCheckpoint("; ".join(bad))
    return len(manifest)


def verify(folder: str) -> None:
    if dist.is_initialized() and dist.get_world_size() > 1:
        verdict = [None]
        if dist.get_rank() == 0:
            try:
                print(f"{_verify(folder)} files ok")
            except Exception as err:
                verdict = [f"{type(err).__name__}: {err}"]
        dist.broadcast_object_list(verdict, src=0)
        if verdict[0] is not None:
            raise CorruptCheckpoint(verdict[0])
    else:
        _verify(folder)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--load", required=True)
    args = ap.parse_args()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    verify(args.load)
    model = torch.nn.Linear(8, 8)
    model.load_state_dict(torch.load(os.path.join(args.load, "model.pt")))
    if dist.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
    model(torch.randn(2, 8)).sum().backward()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
