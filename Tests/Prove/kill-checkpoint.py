#!/usr/bin/env python3
"""Kills processes while they move a store's log into its database, and looks whether all that was acknowledged is there.

A writer that is killed leaves a store with a long log. On a copy of it a process saves once, says so, and begins a checkpoint, in which it is
killed with SIGKILL, at a moment drawn from the length of one that nobody disturbed. Then a reader must see each save whole, the last one
among them, and `tidemark verify` must find nothing in a copy. The same store goes on so until a checkpoint comes to its end. Some kills must
have come while a part of the log was moved: else the proof says that it has shown nothing.
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
    """A writer's process, and the number of its first save, which it has acknowledged."""
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
        # The last connection that is closed empties the log, so the writer may not end by itself.
        writer = killing.start([options.probe, "write", template, "--count", "1", "--each", str(options.records), "--stays"])
        writer.stdout.readline()
        writer.kill()
        writer.communicate()
        log = os.path.getsize(template / "private.sqlite-wal")
        # A longer one is moved as it is saved.
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
