#!/usr/bin/env python3
"""Kills processes during checkpoints, which move a store's log into its database, and checks that every acknowledged save is there.

A killed writer leaves a store with a long log. On a copy of that store a process saves once, says so, and begins a checkpoint. It is killed with
SIGKILL during the checkpoint, at a moment drawn from the length of an undisturbed one. Then a reader must see each save whole, with the last one,
and `tidemark verify` must find nothing in a copy. The same store is used until a checkpoint ends. Some kills must have come after a part of the log
was moved. Otherwise the proof fails, because it has shown nothing.
"""

import json
import os
import pathlib
import shutil
import signal
import tempfile
import time

import killing
from killing import fail


def begun(options, container, *flags):
    """Starts a writer, and returns its process and the number of its first save, which it has acknowledged."""
    process = killing.start([options.probe, "write", container, "--count", "1", "--acknowledges", *flags])
    line = process.stdout.readline()
    if not line.endswith("\n"):
        fail(f"the writer ended by itself: {process.stderr.read()}")
    return process, int(line)


def main():
    parser = killing.parser(__doc__, kills=200, records=60_000, pictures=0)
    parser.add_argument("--probe", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the program store-probe")
    options = parser.parse_args()
    seed, moments = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        template = folder / "template"
        # A process that ends by itself closes the last connection, which empties the log. So the writer is killed.
        writer = killing.start([options.probe, "write", template, "--count", "1", "--each", str(options.records), "--stays"])
        writer.stdout.readline()
        writer.kill()
        writer.communicate()
        log = os.path.getsize(template / "private.sqlite-wal")
        # A longer log would be moved while it is written.
        if not options.records * 100 < log < 60 << 20:
            fail(f"the log has {log:,} bytes, which is too little or too much: choose other --records")
        shutil.copytree(template, folder / "undisturbed")
        process, _ = begun(options, folder / "undisturbed", "--checkpoints")
        began = time.monotonic()
        _, errors = killing.wait_for(process)
        length = time.monotonic() - began
        if process.returncode != 0:
            fail(f"the undisturbed checkpoint ended with {process.returncode}: {errors}")
        print(f"undisturbed: a log of {log / 1e6:.0f} MB, moved in {length * 1e3:.0f} ms", flush=True)
        kills = stores = within = 0
        while kills < options.kills:
            container = folder / f"killed-{stores}"
            shutil.copytree(template, container)
            ended, size = False, os.path.getsize(container / "private.sqlite")
            while not ended:
                process, acknowledged = begun(options, container, "--checkpoints")
                time.sleep(length * moments.uniform(0, 1))
                process.kill()
                process.communicate()
                if process.returncode not in (0, -signal.SIGKILL):
                    fail(f"the checkpoint ended by itself with {process.returncode} (seed {seed})")
                ended = process.returncode == 0
                kills += not ended
                size, moved = os.path.getsize(container / "private.sqlite"), size
                within += not ended and size != moved and os.path.getsize(container / "private.sqlite-wal") >= log
                found = json.loads(killing.finish([options.probe, "read", container]))
                if found["problems"] or found["rows"] != acknowledged:
                    fail(f"after a kill at save {acknowledged}: {found} (seed {seed})")
                shutil.copytree(container, folder / "copy")
                killing.finish([options.tidemark, "verify", folder / "copy"])
                shutil.rmtree(folder / "copy")
                if kills >= options.kills:
                    break
            stores += 1
            shutil.rmtree(container)
        if not within:
            fail(f"none of {kills} kills came while the log was moved (seed {seed})")
        print(f"{kills} kills, {within} of them with a part of the log moved, {stores} stores: each save was there, and verify found nothing")


if __name__ == "__main__":
    main()
