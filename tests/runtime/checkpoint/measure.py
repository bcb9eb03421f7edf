"""What save_checkpoint costs over the bare DCP save inside it: ``python -m runtime.checkpoint.measure``.

Run it in ``tests/``. Two gloo ranks save 200 MB in turns with and without the helper; medians are compared.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from ..processes import Zygote


def main(num_megabytes: int = 200, rounds: int = 9) -> None:
    zygote = Zygote()
    with tempfile.TemporaryDirectory() as folder:
        ended = zygote.run(
            "saving_models:save_a_lot",
            ranks=2,
            timeout_s=500,
            folder=Path(folder),
            num_megabytes=num_megabytes,
            rounds=rounds,
        )
    zygote.close()
    times: dict[str, list[float]] = {"bare": [], "helper": []}
    for line in ended[0].out.splitlines():
        how, seconds = line.split()
        times[how].append(float(seconds))
    bare, helper = (statistics.median(times[how]) for how in ("bare", "helper"))
    ratios = [b / a for a, b in zip(times["bare"], times["helper"], strict=True)]
    print(f"bare {bare:.3f} s, helper {helper:.3f} s, ratio {helper / bare:.3f}")
    print(f"paired ratios: median {statistics.median(ratios):.3f}, {[round(each, 2) for each in ratios]}")


if __name__ == "__main__":
    main()
