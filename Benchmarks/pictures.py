#!/usr/bin/env python3
"""Measures the scaling of pictures, in one thread, beside a floor in plain C and the programs that people would use instead.

Usage: pictures.py [--photos DIR] [--runs 5] [--max 2048] [--quality 80] [--thumbnail 256] [--out DIR] [--json FILE] [--smoke]

The photos are the JPEG and PNG files of a folder. By default they are those of the journal. Real photos are in Debian's packages
plasma-workspace-wallpapers and gnome-backgrounds. Peers that are not installed are left out: vipsthumbnail (libvips-tools), convert (imagemagick),
and Pillow, for the Python that runs this."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PILLOW = """
import sys
from PIL import Image, ImageOps
top, quality, small = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
import io
for path in sys.argv[4:]:
    image = Image.open(path)
    image.draft("RGB", (2 * top, 2 * top))
    image = ImageOps.exif_transpose(image).convert("RGB")
    image.thumbnail((top, top), Image.Resampling.BICUBIC)
    image.save(io.BytesIO(), "JPEG", quality=quality, optimize=True)
    image.thumbnail((small, small), Image.Resampling.BICUBIC)
    image.save(io.BytesIO(), "JPEG", quality=quality, optimize=True)
"""


def build(folder):
    core = ROOT / "CSupport"
    clang = shutil.which("clang") or str(pathlib.Path(shutil.which("swift")).resolve().parent / "clang")
    libraries = ["-ljpeg", "-lpng", "-lz", "-lexif", "-lm"]
    sources = [*(core / "CTidePictures").glob("*.c"), *(core / "CTideCore" / f"tide_{it}.c" for it in ("image", "status", "calendar"))]
    includes = [f"-I{core}/CTideCore/include", f"-I{core}/CTidePictures/include"]
    subprocess.run([clang, "-O2", "-std=gnu17", "-D_GNU_SOURCE", *includes, ROOT / "Benchmarks/Pictures/core.c", *sources, *libraries,
                    "-o", folder / "core"], check=True)
    subprocess.run([clang, "-O2", "-std=gnu17", ROOT / "Benchmarks/Pictures/floor.c", "-ljpeg", "-o", folder / "floor"], check=True)


def has_pillow():
    return subprocess.run([sys.executable, "-c", "import PIL"], capture_output=True).returncode == 0


def contestants(options, folder, photos):
    """Yields a name and the commands of one round for each contestant. The commands make the pictures and the thumbnails."""
    sizes = [str(options.max), str(options.quality), str(options.thumbnail)]
    yield "core", [[folder / "core", *sizes, *photos]]
    jpegs = [it for it in photos if it.suffix.lower() in (".jpg", ".jpeg")]
    if len(jpegs) == len(photos):
        yield "floor", [[folder / "floor", *sizes, *photos]]
    if shutil.which("vipsthumbnail"):
        kinds = [(options.max, "v"), (options.thumbnail, "w")]
        # The thumbnail is made from the scaled picture, as in Tidemark's API.
        first = ["vipsthumbnail", "-s", str(options.max), "-o", f"{folder}/v/%s.jpg[Q={options.quality},optimize_coding,strip]", *photos]
        second = ["sh", "-c", f"vipsthumbnail -s {options.thumbnail} -o '{folder}/w/%s.jpg[Q={options.quality},strip]' {folder}/v/*.jpg"]
        for _, name in kinds:
            (folder / name).mkdir(exist_ok=True)
        yield "vipsthumbnail", [first, second]
    if shutil.which("convert"):
        yield "imagemagick", [
            ["convert", it, "-auto-orient", "-resize", f"{options.max}x{options.max}>", "-quality", str(options.quality), "-write", folder / "c.jpg",
             "-resize", f"{options.thumbnail}x{options.thumbnail}>", folder / "d.jpg"] for it in photos]
    if has_pillow():
        yield "pillow", [[sys.executable, "-c", PILLOW, *sizes, *photos]]


def measure(commands):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "VIPS_CONCURRENCY": "1", "MAGICK_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"}
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=pathlib.Path, default=ROOT / "Examples/journal/pictures")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--max", type=int, default=2048)
    parser.add_argument("--quality", type=int, default=80)
    parser.add_argument("--thumbnail", type=int, default=256)
    parser.add_argument("--kind", choices=["jpeg", "png"], default="jpeg")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    endings = (".jpg", ".jpeg") if options.kind == "jpeg" else (".png",)
    photos = sorted(it for it in options.photos.rglob("*") if it.suffix.lower() in endings and it.is_file())
    if options.smoke:
        photos, options.runs = photos[:2], 1
    if not photos:
        sys.exit(f"pictures: there are no {options.kind.upper()} files below {options.photos}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build(folder)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            subprocess.run([folder / "core", str(options.max), str(options.quality), str(options.thumbnail), *photos], check=True,
                           env={**os.environ, "TIDEMARK_OUT": str(options.out)})
        everyone = dict(contestants(options, folder, photos))
        times = {it: [] for it in everyone}
        for _ in range(options.runs + (0 if options.smoke else 1)):
            for it, commands in everyone.items():
                times[it].append(measure(commands))
    if not options.smoke:
        # The first round warms the page cache.
        times = {it: rounds[1:] for it, rounds in times.items()}
    print(f"{len(photos)} pictures, {sum(it.stat().st_size for it in photos) / 1e6:.1f} MB; ratios are of processor time to the core's")
    result = {}
    for it, rounds in times.items():
        ratios = [other[1] / own[1] for other, own in zip(rounds, times["core"])]
        seconds = statistics.median(own[1] for own in rounds)
        result[it] = {"seconds": seconds, "ratio": statistics.median(ratios), "least": min(ratios), "greatest": max(ratios)}
        print(f"{it:14} {seconds:8.3f} s   x {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


main()
