#!/usr/bin/env python3
"""The packages of Debian that a cluster needs. As a program it prints those that are missing, one a line: `.ci/install-missing cluster` installs them."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from nodes import ClusterError, run  # noqa: E402

BINARIES = pathlib.Path("/usr/lib/postgresql/15/bin")
# Debian's Python, which runs Patroni.
PYTHON = "/usr/bin/python3"


def has_program(name):
    """Tells whether a program is there, also one for root that is not on everybody's path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is not None


def has_module(name):
    """Tells whether the Python that runs Patroni finds a module."""
    try:
        return subprocess.run([PYTHON, "-c", f"import {name}"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
    except OSError:
        return False


# For each package, a test for what the cluster needs of it.
NEEDED = {
    "patroni": lambda: has_program("patroni"),
    "etcd-server": lambda: has_program("etcd"),
    "haproxy": lambda: has_program("haproxy"),
    "postgresql-15": lambda: (BINARIES / "postgres").exists(),
    "iproute2": lambda: has_program("ip"),
    "curl": lambda: has_program("curl"),
    # It installs SeaweedFS.
    "python3-venv": lambda: importlib.util.find_spec("ensurepip") is not None,
    # Patroni speaks to etcd and to PostgreSQL by these.
    "python3-etcd": lambda: has_module("etcd"),
    "python3-psycopg2": lambda: has_module("psycopg2"),
}


def missing():
    """The packages that are missing."""
    return [name for name, is_there in NEEDED.items() if not is_there()]


def install_missing(say=lambda text: print(text, file=sys.stderr, flush=True)):
    """Installs what the cluster needs, or says what that is."""
    names = missing()
    if names:
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise ClusterError(f"missing: {' '.join(names)}. On Debian: sudo apt-get install {' '.join(names)}")
        say(f"Installing {' '.join(names)} …")
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *names)


if __name__ == "__main__":
    print("\n".join(missing()))
