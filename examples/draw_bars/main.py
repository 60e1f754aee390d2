import struct
import zlib
from typing import Annotated

from omniforge import Image, Result

BAR, GAP, HEIGHT = 24, 8, 160
PAPER, INK = b"\xff\xff\xff", b"\x2f\x6f\xb7"


def main(values: Annotated[list[float], "The bars' heights, from left to right: 1 to 50 numbers from 0 up"]):
    """Draw a bar chart as a PNG picture, with the standard library alone."""
    if not 1 <= len(values) <= 50 or min(values) < 0:
        raise ValueError("give 1 to 50 numbers, none below 0")
    top = max(values) or 1
    heights = [round(value / top * (HEIGHT - 2 * GAP)) for value in values]
    rows = b"".join(b"\0" + row(heights, HEIGHT - GAP - line) for line in range(HEIGHT))
    width = GAP + len(values) * (BAR + GAP)
    return Result([Image(png(width, rows)), f"{len(values)} bars up to {max(values):g}"], {"width": width, "height": HEIGHT})


def row(heights, level):
    """The pixels of one line, so many pixels above the foot of the bars."""
    bars = b"".join((INK if 0 < level <= height else PAPER) * BAR + PAPER * GAP for height in heights)
    return PAPER * GAP + bars


def png(width, rows):
    """A PNG file of RGB pixels."""
    header = struct.pack(">IIBBBBB", width, HEIGHT, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
