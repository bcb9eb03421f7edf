"""What a run does with an error that its post-processing defers."""

from __future__ import annotations

import pytest

import spmdguard


def test_error_deferred_in_post_train_is_raised():
    """An error that post-processing defers ends the run like one that it raises."""
    original = OSError("export failed")

    def post_train() -> None:
        spmdguard.defer_error(original)

    with pytest.raises(OSError, match="export failed") as caught:
        spmdguard.run(lambda: None, post_train=post_train)
    assert caught.value is original
    assert not spmdguard.has_deferred_error()


def test_clean_post_train_raises_nothing():
    """A run whose post-processing defers nothing ends without an error."""
    calls: list[str] = []
    spmdguard.run(lambda: calls.append("train"), post_train=lambda: calls.append("post"))
    assert calls == ["train", "post"]
