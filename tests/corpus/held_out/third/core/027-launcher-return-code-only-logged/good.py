import argparse
import logging
import subprocess
import sys
from dataclasses import dataclass

log = logging.getLogger("run_training")


@dataclass
class TorchrunArgs:
    nproc_per_node: int
    nnodes: int
    node_rank: int
    rdzv_id: int
    rdzv_endpoint: str


@dataclass
class TrainingArgs:
    model_path: str
    data_path: str
    ckpt_output_dir: str
    num_epochs: int


def command_for(torch_args, train_args):
    return [
        "torchrun",
        f"--nnodes={torch_args.nnodes}",
        f"--node_rank={torch_args.node_rank}",
        f"--nproc_per_node={torch_args.nproc_per_node}",
        f"--rdzv_id={torch_args.rdzv_id}",
        f"--rdzv_endpoint={torch_args.rdzv_endpoint}",
        "main_ds.py",
        f"--model_name_or_path={train_args.model_path}",
        f"--data_path={train_args.data_path}",
        f"--output_dir={train_args.ckpt_output_dir}",
        f"--num_epochs={train_args.num_epochs}",
    ]


def run_training(torch_args, train_args):
    process = subprocess.Popen(command_for(torch_args, train_args), text=True)
    try:
        process.wait()
    except KeyboardInterrupt:
        process.terminate()
        raise
    if process.returncode != 0:
        log.error("training subprocess ended with %s", process.returncode)
        raise RuntimeError(f"training failed with exit code {process.returncode}")


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--model", required=True)
    cli.add_argument("--data", required=True)
    opts = cli.parse_args()
    run_training(
        TorchrunArgs(nproc_per_node=8, nnodes=1, node_rank=0, rdzv_id=7, rdzv_endpoint="127.0.0.1:12222"),
        TrainingArgs(opts.model, opts.data, "ckpts", 2),
    )
    log.info("training finished")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    sys.exit(main())
