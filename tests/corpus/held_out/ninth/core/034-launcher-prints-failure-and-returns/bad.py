"""Start the training script on all GPUs of this machine and wait for it."""
import argparse
import subprocess
import sys


def build_command(args):
    return [
        "torchrun",
        f"--nproc_per_node={args.gpus}",
        f"--rdzv_endpoint=127.0.0.1:{args.port}",
        "--rdzv_backend=c10d",
        args.script,
        f"--output={args.output}",
    ]


def run_training(args):
    process = None
    try:
        process = subprocess.Popen(build_command(args))
        process.wait()
    except KeyboardInterrupt:
        print("interrupted, stopping the workers")
        if process is not None:
            process.terminate()
            process.wait(timeout=60)
        raise
    if process.returncode != 0:
        print(f"training subprocess ended with {process.returncode}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--output", default="/tmp/model")
    args = parser.parse_args()
    run_training(args)
    print(f"training complete, the model is in {args.output}")


if __name__ == "__main__":
    main()
