"""Build a word list once, then count words on every process."""
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import spmdguard as sg


def build(text: Path, cache: Path) -> None:
    words = sorted(set(text.read_text().split()))
    part = cache.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({word: number for number, word in enumerate(words)}))
    part.replace(cache)


def word_list(text: Path, cache: Path) -> dict[str, int]:
    with sg.main_process_first():
        if not cache.exists():
            build(text, cache)
        return json.loads(cache.read_text())


def main() -> None:
    text = Path(sys.argv[1] if len(sys.argv) > 1 else "corpus.txt")
    dist.init_process_group("gloo", timeout=timedelta(minutes=5))
    numbers = word_list(text, text.with_suffix(".words.json"))
    counts = torch.zeros(len(numbers))
    counts[dist.get_rank() :: dist.get_world_size()] = 1
    dist.all_reduce(counts)
    dist.destroy_process_group()
    print(int(counts.sum()), "words")


if __name__ == "__main__":
    main()
