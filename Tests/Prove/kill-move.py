#!/usr/bin/env python3
"""Kills moves of a container of real size at random moments, and checks that exactly one whole container is there each time.

The container moves to and fro between two places. Each move is killed with SIGKILL at a moment drawn from its whole length, over and over,
until one comes to its end. After each kill exactly one of the two places opens, with the digest that the container had before: all rows of
all tables of both stores, history, pending changes and counters among them, what an export shows, and every asset's bytes. The other place
is refused. Now and then the move is undone instead of being gone on with. Then everything has moved, with the same digest.
"""

import hashlib
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time

import killing
from killing import fail

TYPE = "Destination"
FLOOR = pathlib.Path(__file__).resolve().parent.parent.parent / "Benchmarks" / "Floor"
# What `tidemark` exits with when the container is not there, has moved or is a copy that does not count; or is none.
ELSEWHERE = (66, 73)


def make_container(tidemark, folder, records, pictures):
    """Imports a journal twice, the second time with changes, and gives the container a second store."""
    data, generator = folder / "data", folder / "generate"
    data.mkdir()
    subprocess.run(["cc", "-O2", "-o", generator, FLOOR / "generate.c", FLOOR / "journal.c"], check=True)
    changed = max(1, records // 10)
    arguments = [data, "--records", records, "--pictures", pictures, "--changed", changed]
    subprocess.run([generator, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    container = folder / "Journal.tidemark"
    for manifest in ("records.jsonl", "records-changed.jsonl"):
        subprocess.run([tidemark, "import", data / manifest, "--into", container, "--type", TYPE, "--id", "id", "--asset", "image",
                        "--json"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(data)
    # Any store's file is one of either scope.
    shutil.copy(container / "private.sqlite", container / "shared.sqlite")
    return container


class Moves:
    def __init__(self, options):
        self.tool = options.tidemark

    def digest(self, container):
        """A digest of all that there is; None where the container can't be opened."""
        verify = subprocess.run([self.tool, "verify", container, "--json"], capture_output=True, text=True)
        if verify.returncode in ELSEWHERE:
            return None
        if verify.returncode != 0:
            fail(f"verify of {container}: {verify.returncode} {verify.stdout}{verify.stderr}")
        digest = hashlib.sha256(json.loads((container / "container.json").read_text())["identity"].encode())
        digest.update(subprocess.run([self.tool, "export", container, "--type", TYPE, "--to", "-"], capture_output=True,
                                     check=True).stdout)
        for name in ("private.sqlite", "shared.sqlite"):
            database = sqlite3.connect(f"file:{container / name}?mode=ro", uri=True)
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            for row in database.execute("SELECT name, sql FROM sqlite_master ORDER BY name"):
                digest.update(repr(row).encode())
            for table in tables:
                digest.update(table.encode())
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    digest.update(repr(row).encode())
            database.close()
        killing.add_assets(digest, container)
        return digest.hexdigest()

    def command(self, source, target, *options):
        return [self.tool, "store", "move", source, target, "--json", *options]

    def finish(self, source, target):
        return json.loads(killing.finish(self.command(source, target)))

    def check(self, places, wanted, after):
        """The one place at which the container is."""
        digests = {place: self.digest(place) for place in places}
        found = [place for place, digest in digests.items() if digest is not None]
        if len(found) != 1:
            fail(f"{after}, {len(found)} containers can be opened: {found}")
        if digests[found[0]] != wanted:
            fail(f"{after}, the container at {found[0]} is not what it was")
        return found[0]


def main():
    parser = killing.parser(__doc__, kills=100, records=50_000, pictures=500)
    parser.add_argument("--second", type=pathlib.Path, help="a folder, perhaps on another file system, of the other place")
    options = parser.parse_args()
    seed, drawn = killing.draw(options)
    with tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.folder) as name, \
            tempfile.TemporaryDirectory(prefix="tidemark-kill-", dir=options.second or name) as second:
        moves = Moves(options)
        source = make_container(options.tidemark, pathlib.Path(name), options.records, options.pictures)
        target = pathlib.Path(second) / "Moved.tidemark"
        wanted = moves.digest(source)
        began = time.monotonic()
        moves.finish(source, target)
        length = time.monotonic() - began
        if moves.check([source, target], wanted, "undisturbed") != target:
            fail("an undisturbed move has not moved the container")
        print(f"undisturbed: {options.records} records, {options.pictures} pictures, {length:.2f} s", flush=True)
        source, target = target, source
        kills = done = undone = 0
        while kills < options.kills:
            if killing.kill_after(moves.command(source, target), length * drawn.uniform(0.01, 1.2)):
                kills += 1
                there = moves.check([source, target], wanted, f"after {kills} kills (seed {seed})")
                if there == source and drawn.random() < 0.2:
                    # Where the kill came before anything was done, there is nothing to undo.
                    killing.start(moves.command(source, target, "--rollback")).communicate()
                    undone += 1
                    if target.exists() and any(path.name != "container.json" for path in target.iterdir()):
                        fail(f"after {kills} kills something is left of a move that was undone (seed {seed})")
                continue
            if moves.check([source, target], wanted, f"after {kills} kills and a whole move (seed {seed})") != target:
                fail(f"after {kills} kills a move has not moved the container (seed {seed})")
            if [path.name for path in source.iterdir()] != ["container.json"]:
                fail(f"after {kills} kills a move has left old files (seed {seed})")
            if not moves.finish(source, target)["alreadyMoved"]:
                fail(f"after {kills} kills a repeated move was not harmless (seed {seed})")
            done += 1
            print(f"move {done}: whole, the same; {kills} kills so far, {undone} undone", flush=True)
            source, target = target, source
        moves.finish(source, target)
        moves.check([source, target], wanted, f"at the end (seed {seed})")
    print(f"{kills} kills, {undone} moves undone, {done + 1} whole: one container each time, and the same")


if __name__ == "__main__":
    main()
