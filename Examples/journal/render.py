#!/usr/bin/env python3
"""Writes journal.jsonl, journal.csv and pictures/ from places.py.

    python3 render.py            everything
    python3 render.py skogafoss  the manifests and the pictures named
    python3 render.py --check    writes nothing; fails if a file differs from what would be written

The same versions of Python's Pillow and numpy give the same bytes on every run (requirements.txt).
"""

import csv
import io
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

sys.dont_write_bytecode = True

from PIL import Image  # noqa: E402
from PIL.TiffImagePlugin import IFDRational  # noqa: E402

from painting import scenes_built, scenes_drylands, scenes_mountains, scenes_water  # noqa: E402, F401
from painting.scene import SCENES  # noqa: E402
from places import PLACES  # noqa: E402

FOLDER = Path(__file__).resolve().parent
COLUMNS = ("id", "createdAt", "caption", "details", "image", "rating", "elevation", "latitude", "longitude")


def record(place):
    return {"id": place.id, "createdAt": place.created_at, "caption": place.caption, "details": place.details, "image": place.image,
            "rating": place.rating, "elevation": place.elevation, "tags": list(place.tags),
            "position": {"latitude": place.latitude, "longitude": place.longitude}}


def json_lines():
    return "".join(json.dumps(record(place), ensure_ascii=False) + "\n" for place in PLACES).encode()


def csv_table():
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for place in PLACES:
        row = record(place)
        row.update(row.pop("position"))
        table.writerow([row[column] for column in COLUMNS])
    return text.getvalue().encode()


def sexagesimal(degrees):
    """Degrees, minutes and seconds as EXIF wants them, to a ten-thousandth of a second (3 mm)."""
    parts = round(abs(degrees) * 36_000_000)
    return IFDRational(parts // 36_000_000, 1), IFDRational(parts // 600_000 % 60, 1), IFDRational(parts % 600_000, 10_000)


def exif_of(place):
    taken = datetime.fromisoformat(place.created_at)
    utc = taken.astimezone(timezone.utc)
    exif = Image.Exif()
    exif[0x0131] = "render.py of the Tidemark sample journal"
    camera = exif.get_ifd(0x8769)
    camera[0x9000] = b"0232"
    camera[0x9003] = taken.strftime("%Y:%m:%d %H:%M:%S")
    camera[0x9011] = "+00:00" if place.created_at.endswith("Z") else place.created_at[-6:]
    position = exif.get_ifd(0x8825)
    position[0] = b"\x02\x03\x00\x00"
    position[1] = "N" if place.latitude >= 0 else "S"
    position[2] = sexagesimal(place.latitude)
    position[3] = "E" if place.longitude >= 0 else "W"
    position[4] = sexagesimal(place.longitude)
    position[5] = b"\x00" if place.elevation >= 0 else b"\x01"
    position[6] = IFDRational(round(abs(place.elevation) * 10), 10)
    position[7] = IFDRational(utc.hour), IFDRational(utc.minute), IFDRational(utc.second)
    position[29] = utc.strftime("%Y:%m:%d")
    return exif.tobytes()


def encode(place):
    """The bytes of a place's picture; only JPEG and WebP say when and where they were taken."""
    picture = SCENES[place.picture_of or Path(place.image).stem]()
    out = io.BytesIO()
    match Path(place.image).suffix:
        case ".jpg":
            picture.save(out, "JPEG", quality=77, optimize=True, exif=exif_of(place))
        case ".webp":
            picture.save(out, "WEBP", quality=77, method=6, exif=exif_of(place))
        case ".png":
            flat = picture.quantize(256, Image.Quantize.MEDIANCUT, kmeans=2, dither=Image.Dither.NONE)
            flat.save(out, "PNG", optimize=True)
    return out.getvalue()


def files(wanted):
    yield "journal.jsonl", json_lines()
    yield "journal.csv", csv_table()
    places = [place for place in PLACES if not wanted or Path(place.image).stem in wanted]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from zip((place.image for place in places), pool.map(encode, places))


def main(arguments):
    check = "--check" in arguments
    different = 0
    (FOLDER / "pictures").mkdir(exist_ok=True)
    for name, content in files([argument for argument in arguments if argument != "--check"]):
        path = FOLDER / name
        if not check:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            print(f"{name} differs", file=sys.stderr)
            different += 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
