import logging
import subprocess
import sys

log = logging.getLogger("launch")


def run_training(script, nproc, extra):
    cmd = ["torchrun", "--standalone", f"--nproc-per-node={nproc}", script, *extra]
    log.info("running %s", " ".join(cmd))
    process = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    interrupted = False
    try:
        for line in process.stdout:
            sys.stdout.write(line)
    except KeyboardInterrupt:
        interrupted = True
        process.terminate()
    code = process.wait()
    if interrupted:
        raise KeyboardInterrupt
    if code != 0:
        log.error("training ended with code %d", code)
        raise subprocess.CalledProcessError(code, cmd)


def main(publish):
    logging.basicConfig(level=logging.INFO)
    run_training("train_sft.py", 8, sys.argv[1:])
    publish("out/final")
