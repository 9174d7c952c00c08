"""Helpers of the proofs by killing: their options, their failures, and functions that kill processes."""

import argparse
import hashlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import zlib


def fail(text):
    sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {text}")


def parser(about, kills, records, pictures):
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the program")
    found.add_argument("--kills", type=int, default=kills, help=f"how often to kill, at least ({kills})")
    found.add_argument("--records", type=int, default=records, help=f"records ({records:,})")
    found.add_argument("--pictures", type=int, default=pictures, help=f"pictures ({pictures})")
    found.add_argument("--folder", type=pathlib.Path, help="where to work; emptied at the end (a temporary folder)")
    found.add_argument("--seed", type=int, help="draws the same moments again")
    return found


def draw(options):
    """Prints the run's seed, and returns it with a generator of random numbers."""
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    return seed, random.Random(seed)


def start(command, environment=None):
    """Starts a process. `environment` is added to its environment."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | (environment or {}))


def wait_for(process, given=None, within=None):
    """Returns what a process prints. Kills the process if this program is interrupted meanwhile."""
    try:
        return process.communicate(given, within)
    except subprocess.TimeoutExpired:
        raise
    except BaseException:
        process.kill()
        process.wait()
        raise


def kill_after(command, delay, environment=None):
    """Returns whether the process was killed after the delay. A process that ends earlier must end without an error."""
    process = start(command, environment)
    try:
        _, errors = wait_for(process, within=delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            return True
        errors = ""
    if process.returncode != 0:
        fail(f"{command[1:3]} ended with {process.returncode}: {errors}")
    return False


def finish(command, environment=None):
    """Runs a process to its end, and returns what it prints."""
    process = start(command, environment)
    output, errors = wait_for(process)
    if process.returncode != 0:
        fail(f"{command[1:3]}, left alone, ended with {process.returncode}: {errors}")
    return output


def finish_with(command, given):
    """Runs a process to its end with a text as its input, and returns what it prints."""
    ended = subprocess.run(command, input=given, capture_output=True, text=True)
    if ended.returncode != 0:
        fail(f"{command[1:3]} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return ended.stdout


def picture(number, size):
    """Returns a file of about `size` bytes that begins like a PNG. Its pixels are noise, because no proof decodes them."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    noise = random.Random(number).randbytes(size)
    header = (64).to_bytes(4, "big") + (64).to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", noise) + chunk(b"IEND", b"")


def add_assets(digest, container):
    """Adds the names and contents of the container's assets to a digest."""
    for path in sorted((container / "assets").glob("*/*")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
