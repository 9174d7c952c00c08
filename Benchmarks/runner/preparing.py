"""Compiling the floors, making the data, installing the Python peers."""

import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from .measuring import Failure, say

FLOOR = pathlib.Path(__file__).resolve().parent.parent / "Floor"
PEER_PACKAGES = ["duckdb", "orjson", "sqlite-utils"]
PICTURES_PER_RECORD = 0.01
CHANGED_PER_RECORD = 0.1
SEED = 1


def newest(paths):
    return max(path.stat().st_mtime for path in paths)


def build(binaries):
    """Compiles the generator and the floors where they are missing or older than their sources."""
    binaries.mkdir(parents=True, exist_ok=True)
    sources = sorted(path for path in FLOOR.iterdir() if path.suffix in (".c", ".cpp", ".h"))
    programs = [binaries / "generate", binaries / "floor"]
    if all(program.exists() and program.stat().st_mtime > newest(sources) for program in programs):
        return
    say("building the floors")
    flags = ["-O3", "-march=native", "-Wall", "-Wextra", "-pthread"]
    compile_c = [os.environ.get("CC", "cc"), "-std=gnu11", *flags]
    compile_cpp = [os.environ.get("CXX", "c++"), "-std=c++17", *flags]
    objects = {}
    for source in sources:
        if source.suffix != ".h":
            objects[source.stem] = binaries / f"{source.stem}.o"
            command = [*(compile_c if source.suffix == ".c" else compile_cpp), "-c", source, "-o", objects[source.stem]]
            compile_step(command)
    floor = [objects[name] for name in sorted(objects) if name != "generate"]
    compile_step([*compile_cpp, *floor, "-lsqlite3", "-lsimdjson", "-o", binaries / "floor"])
    compile_step([*compile_c, objects["generate"], objects["journal"], "-o", binaries / "generate"])
    for path in objects.values():
        path.unlink()


def compile_step(command):
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        needs = "The floors need a C and a C++ compiler and the development files of libsqlite3, libxxhash and libsimdjson."
        raise Failure(f"{shlex.join(map(str, command))}: {error}\n{needs}")


def make_data(binaries, folder, records, bare):
    """Generates a data set unless the folder holds the one that this generator would make."""
    generator = hashlib.sha256(b"".join((FLOOR / name).read_bytes() for name in ("generate.c", "journal.c", "journal.h")))
    pictures = 0 if bare else int(records * PICTURES_PER_RECORD)
    changed = int(records * CHANGED_PER_RECORD)
    made = {"records": records, "pictures": pictures, "changed": changed, "seed": SEED, "bare": bare,
            "generator": generator.hexdigest()}
    stamp = folder / "made.json"
    if stamp.exists() and json.loads(stamp.read_text()) == made:
        return made
    say(f"making {records:,} records and {pictures:,} pictures in {folder}")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    command = [binaries / "generate", folder, "--records", records, "--seed", SEED]
    command += ["--bare"] if bare else ["--pictures", pictures, "--changed", changed]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    stamp.write_text(json.dumps(made))
    return made


def make_environment(folder):
    """Makes a Python environment with the peers in it, and returns their versions; None where that can't be done."""
    python = folder / "bin" / "python"
    versions = "import sys, importlib.metadata as m; print(*(p + ' ' + m.version(p) for p in sys.argv[1:]), sep=', ')"
    show = [str(python), "-c", versions, *PEER_PACKAGES]
    try:
        if not python.exists():
            say("installing the Python peers")
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        shown = subprocess.run(show, capture_output=True, text=True)
        if shown.returncode != 0:
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEER_PACKAGES], check=True)
            shown = subprocess.run(show, capture_output=True, text=True, check=True)
        return shown.stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"the Python peers can't be installed: {error}")
        return None


def data_set_name(records):
    return f"{records // 1000}k" if records % 1000 == 0 else str(records)
