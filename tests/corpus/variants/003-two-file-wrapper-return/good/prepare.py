"""Tokenize the corpus on one process."""
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from comm import is_lead, line_up


def prepare(source: Path, target: Path) -> list[int]:
    tokens: list[int] = []
    if is_lead():
        tokens = [ord(c) for c in source.read_text()]
        target.write_text(" ".join(map(str, tokens)))
    line_up("tokens on disk")
    return tokens


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    print(len(prepare(Path("corpus.txt"), Path("tokens.txt"))))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
