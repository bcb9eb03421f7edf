"""SPG711: the failure of a launched training is passed over."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG711"


def test_codes_that_nothing_looks_at() -> None:
    """Run, call and system as statements, a child that is waited for, commands in names, lists and texts."""
    assert agree(
        """
        import os
        import subprocess
        import sys

        COMMAND = ["torchrun", "--nproc-per-node", "8", "train.py"]

        def plain():
            subprocess.run(["torchrun", "--nproc-per-node=8", "train.py"])  # SPG711

        def constant():
            subprocess.call(COMMAND)  # SPG711

        def text(script):
            os.system(f"accelerate launch --num_processes 4 {script}")  # SPG711

        def module(script):
            command = [sys.executable, "-m", "torch.distributed.run"]
            command += ["--nproc-per-node", "2", script]
            subprocess.run(command, check=False)  # SPG711

        def cluster(script):
            subprocess.run(["srun", "-N4", sys.executable, script])  # SPG711

        def command(script):
            return ["deepspeed", "--num_gpus", "8", script]

        def waited(script):
            child = subprocess.Popen(command(script), stdout=subprocess.PIPE)
            for line in child.stdout:
                print(line)
            child.wait()  # SPG711

        class Job:
            def __init__(self, script):
                self.command = ["accelerate", "launch", script]

            def start(self):
                subprocess.run(self.command)  # SPG711
        """,
        CODE,
    )


def test_codes_that_are_only_logged() -> None:
    """In either arm, by print or a logger, with a bare return, in a handler of the error."""
    assert agree(
        """
        import logging
        import subprocess

        log = logging.getLogger(__name__)

        def completed(script):
            done = subprocess.run(["torchrun", script], capture_output=True)
            if done.returncode != 0:
                log.error("failed: %s", done.stderr)  # SPG711
                return
            log.info("done")

        def waited(script):
            child = subprocess.Popen(["torchrun", script])
            code = child.wait()
            if code == 0:
                print("finished")
            else:
                print("failed", code)  # SPG711

        def called(script):
            if (code := subprocess.call(["torchrun", script])):
                logging.warning("ended with %s", code)  # SPG711

        def asked_in_the_test(script):
            child = subprocess.Popen(["torchrun", script])
            try:
                print(child.pid)
            except KeyboardInterrupt:
                child.terminate()
                child.wait()
                raise
            if child.wait() != 0:
                print("failed")  # SPG711

        def ended_by_hand(script):
            child = None
            try:
                child = subprocess.Popen(["torchrun", script])
                child.wait()
            except KeyboardInterrupt:
                if child is not None:
                    child.terminate()
                    child.wait(timeout=60)
                raise
            if child.returncode != 0:
                print("failed")  # SPG711

        def killed_in_the_end(script):
            child = subprocess.Popen(["torchrun", script])
            try:
                while child.poll() is None:
                    print("still running")
            finally:
                if child and child.poll() is None:
                    child.kill()
            if child.returncode:
                log.error("failed")  # SPG711

        def started_in_the_test(script):
            if subprocess.call(["torchrun", script]):
                logging.warning("failed")  # SPG711

        def caught(script):
            try:
                subprocess.run(["torchrun", script], check=True)
            except subprocess.CalledProcessError as error:  # SPG711
                log.exception("training failed: %s", error)
        """,
        CODE,
    )


def test_codes_that_count() -> None:
    """Checked, raised, given back, handed on, kept, used to end; other commands; trainings that are started anew."""
    assert agree(
        """
        import logging
        import subprocess
        import sys

        def checked(script):
            subprocess.run(["torchrun", script], check=True)
            subprocess.check_call(["torchrun", script])

        def raised(script):
            code = subprocess.call(["torchrun", script])
            if code != 0:
                raise RuntimeError(f"training ended with {code}")

        def given_back(script):
            child = subprocess.Popen(["torchrun", script])
            code = child.wait()
            if code:
                logging.error("failed")
            return code

        def raised_in_the_test(script):
            child = subprocess.Popen(["torchrun", script])
            try:
                print(child.pid)
            except KeyboardInterrupt:
                child.wait()
                raise
            if child.wait() != 0:
                raise RuntimeError("failed")

        def ended_by_hand(script):
            child = None
            try:
                child = subprocess.Popen(["torchrun", script])
                child.wait()
            finally:
                if child is not None and child.poll() is None:
                    child.kill()
            if child.returncode != 0:
                print("failed")
            return child is not None and not child.returncode

        def waited_in_the_handler(script):
            child = subprocess.Popen(["torchrun", script])
            try:
                print(child.pid)
            except KeyboardInterrupt:
                child.terminate()
                child.wait()
                raise
            code = child.wait()
            if code != 0:
                raise RuntimeError("failed")

        def logged_and_given_back(script):
            child = subprocess.Popen(["torchrun", script])
            code = child.wait()
            if child.returncode:
                print("failed")
            return code

        def ended(script):
            done = subprocess.run(["torchrun", script])
            if done.returncode:
                print("failed")
            sys.exit(done.returncode)

        def handed_on(script, report):
            done = subprocess.run(["torchrun", script])
            if done.returncode:
                print("failed")
            report(done)

        def counted(scripts):
            failed = 0
            for script in scripts:
                code = subprocess.call(["torchrun", script])
                if code:
                    print("failed", script)
                    failed += 1
            assert not failed

        def kept(script, jobs):
            child = subprocess.Popen(["torchrun", script])
            jobs.append(child)
            child.wait()

        def caught(script):
            try:
                subprocess.run(["torchrun", script], check=True)
            except subprocess.CalledProcessError:
                logging.exception("failed")
                raise

        def again(script):
            while True:
                subprocess.run(["torchrun", script])

        def other():
            subprocess.run(["nvidia-smi"])
            subprocess.run(["torchrun_help.sh"])
            subprocess.run(["srun", "hostname"])
        """,
        CODE,
    )


def test_known_limits() -> None:
    """A child that nobody waits for, and a helper of the file that runs what it is given."""
    assert agree(
        """
        import subprocess

        def run(command):
            subprocess.run(command)

        def train(script):
            run(["torchrun", script])
            subprocess.Popen(["torchrun", script])
        """,
        CODE,
    )
