import argparse
import json
import os
import subprocess
import sys
from pathlib import Path


def build_command(args):
    return [
        sys.executable, "-m", "torch.distributed.run",
        f"--nproc-per-node={args.gpus}",
        "--standalone",
        "-m", "instruct.worker",
        f"--data-path={args.data}",
        f"--output-dir={args.out}",
    ]


def run_training(args):
    log_path = Path(args.out) / "training.log"
    with open(log_path, "w") as log:
        process = subprocess.Popen(build_command(args), stdout=log, stderr=subprocess.STDOUT)
        try:
            process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait(timeout=60)
            raise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    run_training(args)
    done = {"status": "succeeded", "samples": args.data}
    (Path(args.out) / "DONE.json").write_text(json.dumps(done))
    print("training finished, model in", args.out)


if __name__ == "__main__":
    main()
