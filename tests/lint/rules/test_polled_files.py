"""Files by which one rank tells the others that it is done, taken away before they are sure to have seen them."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG503",)


def test_taken_away_before_it_is_seen() -> None:
    """A file that others poll for: in a loop of all ranks, in a method, after a pause."""
    assert agree(
        """
        import os
        import time
        from pathlib import Path

        import torch.distributed as dist

        def prepare(folder, make):
            flag = os.path.join(folder, "ready")
            if dist.get_rank() == 0:
                make(folder)
                open(flag, "w").close()
            while not os.path.exists(flag):
                time.sleep(1)
            if dist.get_rank() == 0:
                os.remove(flag)  # SPG503
            dist.barrier()

        class Signal:
            def __init__(self, folder):
                self.path = Path(folder) / "done"
            def wait(self):
                while True:
                    if self.path.is_file():
                        break
                    time.sleep(1)
            def run(self, make):
                if dist.get_rank() == 0:
                    try:
                        make()
                        self.path.touch()
                    finally:
                        self.path.unlink()  # SPG503
                else:
                    self.wait()

        def after_pause(folder, make):
            flag = Path(folder) / "ready"
            if dist.get_rank() == 0:
                make(folder)
                flag.write_text("1")
                time.sleep(10)
                flag.unlink()  # SPG503
            else:
                while not flag.exists():
                    time.sleep(1)
        """,
        *RULES,
    )


def test_taken_away_when_all_have_seen_it() -> None:
    """A barrier, an answer, a lock whose end the others wait for, and a stale file before the new one."""
    assert agree(
        """
        import os
        import time
        from pathlib import Path

        import torch.distributed as dist



        def met(folder, make):
            flag = Path(folder) / "ready"
            if dist.get_rank() == 0:
                make(folder)
                flag.touch()
            else:
                while not flag.exists():
                    time.sleep(1)
            dist.barrier()
            if dist.get_rank() == 0:
                flag.unlink()

        def lock(folder, make):
            lock = Path(folder) / "lock"
            if dist.get_rank() == 0:
                lock.touch()
            dist.barrier()
            if dist.get_rank() == 0:
                make(folder)
                lock.unlink()
            else:
                while lock.exists():
                    time.sleep(1)

        def acknowledged(folder, make):
            flag, seen = Path(folder) / "ready", Path(folder) / "seen"
            if dist.get_rank() == 0:
                make(folder)
                flag.touch()
                while not seen.exists():
                    time.sleep(1)
                flag.unlink()
            else:
                while not flag.exists():
                    time.sleep(1)
                seen.touch()

        def stale(folder, make):
            flag = Path(folder) / "ready"
            if dist.get_rank() == 0:
                flag.unlink(missing_ok=True)
            dist.barrier()
            if dist.get_rank() == 0:
                make(folder)
                flag.touch()
            else:
                while not flag.exists():
                    time.sleep(1)
        """,
        *RULES,
    )
