#!/usr/bin/env python3
"""Kills imports of real size at random moments, resumes them, and compares the resulting store with that of an undisturbed import.

Each import is killed with SIGKILL at a moment drawn from its whole length, and continued with --resume, again and again until it ends by itself.
Then its export and its assets must be those of the undisturbed import, byte for byte, its history must add up to the records, and `tidemark verify`
must find nothing.
"""

import pathlib
import shutil
import tempfile
import time

import killing
from importing import Run, make_data
from killing import fail


def main():
    parser = killing.parser(__doc__, kills=200, records=30_000, pictures=300)
    parser.add_argument("--batch", type=int, default=1000, help="rows of a batch (1,000)")
    parser.add_argument("--manifest", type=pathlib.Path, help="a manifest with fields id and image to take instead of a made one")
    options = parser.parse_args()
    seed, moments = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        manifest = options.manifest or make_data(folder / "data", options.records, options.pictures)
        run = Run(options, manifest)
        began = time.monotonic()
        summary = run.finish(folder / "undisturbed")
        length = time.monotonic() - began
        wanted = run.state(folder / "undisturbed")
        print(f"undisturbed: {summary['read']} records, {summary['assets']['stored']} assets, {length:.1f} s", flush=True)
        kills = stores = 0
        while kills < options.kills:
            container = folder / f"killed-{stores}"
            before = kills
            while run.kill_after(container, length * moments.uniform(0.01, 1)):
                kills += 1
            stores += 1
            found = run.state(container)
            if found != wanted:
                fail(f"after {kills - before} kills the store is not that of the undisturbed run (seed {seed})")
            print(f"store {stores}: killed {kills - before} times, resumed, the same; {kills} kills so far", flush=True)
            shutil.rmtree(container)
    print(f"{kills} kills, {stores} stores, each the same as undisturbed")


if __name__ == "__main__":
    main()
