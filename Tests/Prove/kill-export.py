#!/usr/bin/env python3
"""Kills exports with pictures at random moments, and compares the resulting folder with that of an undisturbed export.

An export into an empty folder is killed with SIGKILL at a moment drawn from its whole length, and started again, until one ends by itself. After
each kill the manifest must be whole or missing, each picture under its final name must be whole, and a manifest must have all of its pictures. At
the end the folder must be equal to that of the undisturbed export, file by file, without remains of the killed ones. The container must be as
before, and `tidemark verify` must find nothing in it.
"""

import hashlib
import pathlib
import shutil
import tempfile
import time

import killing
from importing import TYPE, Run, make_data
from killing import fail


def files(folder):
    """Returns the digests of all files below a folder, by their paths."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def main():
    parser = killing.parser(__doc__, kills=200, records=20_000, pictures=300)
    options = parser.parse_args()
    options.batch = 1_000
    seed, moments = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.folder) as name:
        folder = pathlib.Path(name)
        container = folder / "container"
        run = Run(options, make_data(folder / "data", options.records, options.pictures))
        run.finish(container)
        before = run.state(container)

        def command(to):
            return [options.tidemark, "export", container, "--type", TYPE, "--to", to / "journal.jsonl", "--assets", to / "pictures", "--json"]

        began = time.monotonic()
        killing.finish(command(folder / "undisturbed"))
        length = time.monotonic() - began
        wanted = files(folder / "undisturbed")
        print(f"undisturbed: {len(wanted) - 1} pictures, {length:.2f} s", flush=True)
        kills = exports = left = 0
        while kills < options.kills:
            target = folder / f"killed-{exports}"
            earlier = kills
            while killing.kill_after(command(target), length * moments.uniform(0.01, 1)):
                kills += 1
                found = files(target) if target.exists() else {}
                named = {path: found[path] for path in found if path in wanted}
                left += len(found) - len(named)
                torn = [path for path in named if named[path] != wanted[path]]
                if torn:
                    fail(f"after a kill {torn[0]} is not whole (seed {seed})")
                lacking = sorted(set(wanted) - set(named))
                if "journal.jsonl" in named and lacking:
                    fail(f"after a kill the manifest is there, and {lacking[0]} is not (seed {seed})")
            exports += 1
            found = files(target)
            if found != wanted:
                differing = sorted(path for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path))
                fail(f"after {kills - earlier} kills {differing[0]} is not as in the undisturbed export (seed {seed})")
            print(f"export {exports}: killed {kills - earlier} times, then the same; {kills} kills so far", flush=True)
            shutil.rmtree(target)
        if run.state(container) != before:
            fail(f"the container has changed (seed {seed})")
    print(f"{kills} kills, {exports} exports, each the same as undisturbed; {left} temporary files seen after kills, none in the end")


if __name__ == "__main__":
    main()
