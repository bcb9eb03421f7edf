import argparse
import logging
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("launcher")


@dataclass
class TorchrunArgs:
    nproc_per_node: int = 8
    nnodes: int = 1
    node_rank: int = 0
    rdzv_id: int = 123
    rdzv_endpoint: str = "127.0.0.1:12222"


@dataclass
class TrainingArgs:
    model_path: str
    data_path: str
    ckpt_output_dir: str
    num_epochs: int = 1
    effective_batch_size: int = 3840


def build_command(torch_args: TorchrunArgs, train_args: TrainingArgs):
    return [
        "torchrun",
        f"--nnodes={torch_args.nnodes}",
        f"--node_rank={torch_args.node_rank}",
        f"--nproc_per_node={torch_args.nproc_per_node}",
        f"--rdzv_id={torch_args.rdzv_id}",
        f"--rdzv_endpoint={torch_args.rdzv_endpoint}",
        str(Path(__file__).parent / "main_ds.py"),
        f"--model_name_or_path={train_args.model_path}",
        f"--data_path={train_args.data_path}",
        f"--output_dir={train_args.ckpt_output_dir}",
        f"--num_epochs={train_args.num_epochs}",
        f"--effective_batch_size={train_args.effective_batch_size}",
    ]


def run_training(torch_args, train_args):
    command = build_command(torch_args, train_args)
    log.info("running: %s", " ".join(command))
    process = subprocess.Popen(command)
    try:
        process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        log.error("training process failed with exit code %d", process.returncode)
        raise RuntimeError(f"torchrun exited with {process.returncode}")
    log.info("operation completed")


def publish(ckpt_dir, target):
    newest = sorted(Path(ckpt_dir).glob("samples_*"), key=lambda p: p.stat().st_mtime)[-1]
    shutil.copytree(newest, target, dirs_exist_ok=True)


def main():
    p = argparse.ArgumentParser()
    for name in ("model", "data", "ckpt", "publish"):
        p.add_argument("--" + name, required=True)
    a = p.parse_args()
    run_training(TorchrunArgs(), TrainingArgs(a.model, a.data, a.ckpt))
    publish(a.ckpt, a.publish)
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    sys.exit(main())
