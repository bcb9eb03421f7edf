"""Record how the linter does on the corpus, and show it.

python -m tests.corpus.ratchet            compare with the recorded state, print what falls short
python -m tests.corpus.ratchet --update   record the present state
"""

from __future__ import annotations

import argparse
import json
import sys

from tests.corpus.scoring import CASES, HELD_OUT, STATE, VARIANTS, Score, cases, recorded_state, score, summary, worse


def measure() -> dict[str, Score]:
    """The score of every case now."""
    scores = {case.name: score(case) for case in cases(CASES)}
    scores.update({case.name: score(case) for case in cases(HELD_OUT)})
    scores.update({case.name: score(case, strict=True) for case in cases(VARIANTS)})
    return scores


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--update", action="store_true", help="record the present state")
    args = ask.parse_args()
    scores, recorded = measure(), recorded_state()
    for name, now in scores.items():
        if now.found not in ("", "line") or now.false:
            print(f"{name:56} {now.found or '-':10} {' '.join(now.false)}")
    for root in (CASES, HELD_OUT, VARIANTS):
        prefix = f"{root.name}/"
        print(f"{root.name}: {summary([s for n, s in scores.items() if n.startswith(prefix)]).text()}")
    lost = {name: worse(now, recorded[name]) for name, now in scores.items() if name in recorded}
    for name, what in lost.items():
        for line in what:
            print(f"WORSE {name}: {line}")
    if args.update:
        STATE.write_text(json.dumps({name: s.as_json() for name, s in scores.items()}, indent=1) + "\n")
        print(f"recorded {len(scores)} cases in {STATE.name}")
        return 0
    return 1 if any(lost.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
