import os
import shutil
import subprocess
import sys


def run_training(script, nproc, options, log_path):
    command = ["torchrun", "--standalone", f"--nproc-per-node={nproc}", script]
    command += [f"--{key}={value}" for key, value in options.items()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        with open(log_path, "w") as log:
            for line in process.stdout:
                log.write(line)
                sys.stdout.write(line)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if process.wait() != 0:
        print(f"training did not end cleanly, see {log_path}", file=sys.stderr)


def main(script, out, public):
    os.makedirs(out, exist_ok=True)
    run_training(script, 8, {"output-dir": out, "epochs": 3}, os.path.join(out, "train.log"))
    shutil.copytree(os.path.join(out, "last"), public, dirs_exist_ok=True)
    print("published", public)
