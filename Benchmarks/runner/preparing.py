"""Compiles the floors and the core, makes the data, and builds and installs the peers."""

import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from .measuring import Failure, say

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
FLOOR = BENCHMARKS / "Floor"
CORE = BENCHMARKS / "Core"
TIDE_CORE = BENCHMARKS.parent / "CSupport" / "CTideCore"
PEER_PACKAGES = ["duckdb", "orjson", "sqlite-utils"]
CHANGED_PER_RECORD = 0.1
SEED = 1
COMPILING = """A C and a C++ compiler and some libraries are needed. On Debian, as root:
    apt-get install gcc g++ libsqlite3-dev libxxhash-dev libsimdjson-dev"""


def shared(*names):
    return [FLOOR / f"{name}.c" for name in names]


class Program:
    """A program to compile: its sources, its libraries, and the folders of further headers."""

    def __init__(self, name, sources, libraries=(), headers=()):
        self.name, self.sources, self.libraries, self.headers = name, sources, libraries, headers

    def inputs(self):
        folders = {source.parent for source in self.sources} | set(self.headers) | {FLOOR}
        return [*self.sources, *(header for folder in folders for header in folder.glob("*.h"))]


def programs():
    yield Program("generate", shared("generate", "journal"))
    yield Program("floor", [path for path in sorted(FLOOR.glob("*.c*")) if path.stem != "generate"], ["-lsqlite3", "-lsimdjson"])
    tide = [*sorted(CORE.glob("*.c")), *shared("program", "memory", "listing", "journal"), *sorted(TIDE_CORE.glob("*.c"))]
    yield Program("core", tide, ["-lsqlite3", "-lxxhash"], [TIDE_CORE / "include"])


def newest(paths):
    return max(path.stat().st_mtime for path in paths)


def build(binaries, names):
    """Compiles the programs that are missing or older than their sources."""
    binaries.mkdir(parents=True, exist_ok=True)
    for program in programs():
        target = binaries / program.name
        if program.name in names and not (target.exists() and target.stat().st_mtime > newest(program.inputs())):
            say(f"building {program.name}")
            build_program(binaries, program)


def build_program(binaries, program):
    flags = ["-O3", "-pthread", *(f"-I{folder}" for folder in program.headers)]
    compile_c = [os.environ.get("CC", "cc"), "-std=gnu17", *flags]
    compile_cpp = [os.environ.get("CXX", "c++"), "-std=c++17", *flags]
    objects = []
    for source in program.sources:
        objects.append(binaries / f"{source.parent.name}-{source.stem}.o")
        # The core is compiled like in the package: without -march=native. Its warnings are shown there.
        more = ["-D_GNU_SOURCE", "-w"] if source.parent == TIDE_CORE else ["-march=native", "-Wall", "-Wextra"]
        compile_step([*(compile_c if source.suffix == ".c" else compile_cpp), *more, "-c", source, "-o", objects[-1]])
    compile_step([*compile_cpp, *objects, *program.libraries, "-o", binaries / program.name])
    for path in objects:
        path.unlink()


def compile_step(command):
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"{shlex.join(map(str, command))}: {error}\n{COMPILING}")


def make_data(binaries, folder, records, pictures, bare=False):
    """Generates a data set, unless the folder has the one that this generator would make. Returns its description."""
    generator = hashlib.sha256(b"".join((FLOOR / name).read_bytes() for name in ("generate.c", "journal.c", "journal.h")))
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
    """Makes a Python environment with the peers. Returns their versions and None, or None and the reason why that fails."""
    python = folder / "bin" / "python"
    versions = "import sys, importlib.metadata as m; print(*(p + ' ' + m.version(p) for p in sys.argv[1:]), sep=', ')"
    show = [str(python), "-c", versions, *PEER_PACKAGES]
    run = lambda command: subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if not python.exists():
        say("making an environment for the Python peers")
        made = run([sys.executable, "-m", "venv", folder])
        if made.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            return None, f"Python can't make an environment ({last_line(made)}); on Debian, as root: apt-get install python3-venv"
    shown = run(show)
    if shown.returncode != 0:
        say("installing the Python peers")
        installed = run([python, "-m", "pip", "install", "--quiet", *PEER_PACKAGES])
        if installed.returncode != 0:
            return None, f"pip can't install {', '.join(PEER_PACKAGES)}: {last_line(installed)}"
        shown = run(show)
    return shown.stdout.strip(), None


def build_grdb_peer(root):
    """Builds the GRDB peer below `root`. Returns its path and None, or None and the reason why that fails."""
    swift = shutil.which("swift")
    if not swift:
        return None, "no swift on the PATH to build it with, and no --grdb-peer"
    scratch = root / "grdb-peer"
    say("building the GRDB peer; the first time takes minutes")
    command = [swift, "build", "-c", "release", "--package-path", BENCHMARKS, "--scratch-path", scratch, "--product", "grdb-peer"]
    built = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if built.returncode != 0:
        say((built.stdout + built.stderr)[-2000:].rstrip())
        return None, f"swift build fails: {last_line(built)}"
    return str(scratch / "release" / "grdb-peer"), None


def last_line(ended):
    lines = [line.strip() for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [f"exit code {ended.returncode}"])[-1]


def data_set_name(records, pictures=None):
    """Returns the folder's name for a data set. It has the number of pictures if that is not one for a hundred records."""
    name = f"{records // 1000}k" if records % 1000 == 0 else str(records)
    return name if pictures in (None, default_pictures(records)) else f"{name}-{pictures}p"


def default_pictures(records):
    return records // 100
