import argparse
import logging
import subprocess
import sys
from pathlib import Path

log = logging.getLogger("launch")


def stream(process, path):
    with open(path, "w") as copy:
        for line in process.stdout:
            sys.stdout.write(line)
            copy.write(line)


def run_training(script, nproc, rest, logfile):
    command = ["torchrun", "--standalone", f"--nproc_per_node={nproc}", script, *rest]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        stream(process, logfile)
    except KeyboardInterrupt:
        process.terminate()
        process.wait(timeout=60)
        raise
    status = process.wait()
    if status != 0:
        raise RuntimeError(f"training subprocess ended with status {status}, see {logfile}")
    log.info("training subprocess ended well")


def publish(folder):
    newest = max(Path(folder).glob("step*.pt"), key=lambda p: p.stat().st_mtime)
    Path(folder, "release.txt").write_text(newest.name)


def main():
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--out", default="out")
    args, rest = parser.parse_known_args()
    run_training(args.script, args.nproc, rest, "train.log")
    publish(args.out)


if __name__ == "__main__":
    main()
