"""The page of a stall report in a real browser: headless Chromium draws it, and nothing is asked of a network."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from spmdguard.watch.html_report import render_html

from .making import call, elsewhere, waiting
from .test_report import report_of

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (apt-get install chromium)")
RED, AMBER = (0xD6, 0x42, 0x3F), (0xC7, 0x7F, 0x1E)


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [
        "--disable-background-networking",
        "--virtual-time-budget=1000",
        f"--user-data-dir={page.parent / 'profile'}",
    ]
    return subprocess.run([*command, *options, page.as_uri()], capture_output=True, timeout=120, check=True)


def pixels_of(png: bytes) -> list[tuple[int, int, int]]:
    """The pixels of an 8-bit RGB or RGBA image without interlacing."""
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", png[16:29])
    assert (depth, interlace) == (8, 0)
    size = {2: 3, 6: 4}[colour]
    data, offset = b"", 8
    while offset < len(png):
        (length,) = struct.unpack(">I", png[offset : offset + 4])
        if png[offset + 4 : offset + 8] == b"IDAT":
            data += png[offset + 8 : offset + 8 + length]
        offset += length + 12
    raw, stride = zlib.decompress(data), width * size
    before, found = bytearray(stride), []
    for row in range(height):
        kind, line = (
            raw[row * (stride + 1)],
            bytearray(raw[row * (stride + 1) + 1 : (row + 1) * (stride + 1)]),
        )
        _unfilter(kind, line, before, size)
        found += [(line[i], line[i + 1], line[i + 2]) for i in range(0, stride, size)]
        before = line
    return found


def _unfilter(kind: int, line: bytearray, before: bytearray, size: int) -> None:
    for i in range(len(line)):
        left = line[i - size] if i >= size else 0
        up, corner = before[i], before[i - size] if i >= size else 0
        if kind == 4:
            estimate = left + up - corner
            nearest = min((left, up, corner), key=lambda value: abs(estimate - value))
            line[i] = (line[i] + nearest) & 0xFF
        else:
            line[i] = (line[i] + (0, left, up, (left + up) // 2)[kind]) & 0xFF


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report of four ranks, one of which did not come, with an error text that would like to be markup."""
    shared = [call(n, "all_reduce", 10) for n in range(90, 98)]
    ranks = [waiting(rank, 4, [*shared, call(98, "barrier", 20)]) for rank in range(3)]
    ranks.append(elsewhere(3, 4, shared, 33, failure="<img src=x onerror=document.title='broken'>"))
    path = tmp_path / "stall.html"
    path.write_text(render_html(report_of(ranks, 4)), encoding="utf-8")
    return path


def test_a_browser_draws_a_lane_for_each_rank(page: Path) -> None:
    """The screenshot shows the colours of the cause and of waiting, each over a good part of the picture."""
    image = page.with_suffix(".png")
    browse(page, f"--screenshot={image}", "--window-size=1000,700")
    pixels = pixels_of(image.read_bytes())
    assert len(pixels) == 1000 * 700
    assert count(pixels, RED) > 2_500
    assert count(pixels, AMBER) > 1_500


def count(pixels: list[tuple[int, int, int]], colour: tuple[int, int, int]) -> int:
    """How many pixels have nearly this colour."""
    return sum(all(abs(a - b) < 12 for a, b in zip(pixel, colour, strict=True)) for pixel in pixels)


def test_the_page_is_as_we_wrote_it_after_loading(page: Path) -> None:
    """Loaded by a browser, the document has our title, our lanes, and no image or script."""
    document = browse(page, "--dump-dom").stdout.decode()
    assert "<title>Stall: rank 3 did not come: ranks 0-2 wait in barrier</title>" in document
    assert document.count('<div class="lane"') == 3
    assert document.count('<div class="lane cause"') == 1
    assert "<img" not in document
    assert "<script" not in document
