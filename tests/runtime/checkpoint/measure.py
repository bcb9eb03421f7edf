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
    added: dict[str, list[float]] = {"bare": [], "helper": []}
    for line in ended[0].out.splitlines():
        how, total_s, added_s = line.split()
        times[how].append(float(total_s))
        added[how].append(float(added_s))
    bare, helper = (statistics.median(times[how]) for how in ("bare", "helper"))
    print(f"medians: bare {bare:.3f} s, helper {helper:.3f} s, ratio {helper / bare:.3f}")
    share = statistics.median(b / (a - b) for a, b in zip(times["helper"], added["helper"], strict=True))
    extra = statistics.median(added["helper"])
    print(f"outside of the save it wraps: median {1e3 * extra:.1f} ms, {100 * share:.1f} % of that save")


if __name__ == "__main__":
    main()
