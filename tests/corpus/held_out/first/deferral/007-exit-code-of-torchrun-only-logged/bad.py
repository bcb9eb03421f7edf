from __future__ import annotations

import logging
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

logger = logging.getLogger("service")


@dataclass
class TorchrunArgs:
    nnodes: int = 1
    node_rank: int = 0
    nproc_per_node: int = 8
    rdzv_id: int = 123
    rdzv_endpoint: str = "127.0.0.1:29500"

    def flags(self) -> list[str]:
        return [f"--{name}={value}" for name, value in vars(self).items()]


@dataclass
class TrainingArgs:
    data: Path
    output: Path
    epochs: int = 7
    extra: list[str] = field(default_factory=list)


class Streamed:
    """A child whose output goes to the terminal and to a file."""

    def __init__(self, command: list[str], log_file: Path):
        self.command, self.log_file = command, log_file
        self.process: subprocess.Popen | None = None

    def listen(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        pump = threading.Thread(target=self._pump, daemon=True)
        pump.start()
        pump.join()
        self.process.wait()

    def _pump(self) -> None:
        with self.log_file.open("w") as out:
            for line in self.process.stdout:
                sys.stdout.write(line)
                out.write(line)

    def poll(self) -> int | None:
        return self.process.poll()


def run_training(launch: TorchrunArgs, train: TrainingArgs) -> None:
    train.output.mkdir(parents=True, exist_ok=True)
    command = [
        "torchrun", *launch.flags(), str(Path(__file__).with_name("main_ds.py")),
        f"--data={train.data}", f"--output={train.output}", f"--epochs={train.epochs}", *train.extra,
    ]
    child = Streamed(command, train.output / "full_log.txt")
    child.listen()
    code = child.poll()
    if code == 0:
        logger.info("training finished, weights in %s", train.output)
    else:
        logger.error("training subprocess ended with %s", code)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    run_training(TorchrunArgs(), TrainingArgs(Path(sys.argv[1]), Path(sys.argv[2])))
