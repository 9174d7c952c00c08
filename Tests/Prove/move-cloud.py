#!/usr/bin/env python3
"""Moves a large cloud from a directory into PostgreSQL and a bucket and back. The moves are killed, and devices are in the middle of a sync.

A device sends all records and pictures, and a second one is killed while it fetches. The cloud moves into a database; the move is killed several
times. The second device continues over the database, a third begins there and is killed, and the first edits. The cloud moves back, again with
kills, and the third continues. In the end all devices must have the same records, and `tidemark verify` and `tidemark admin verify` must find
nothing.

A move back that follows at once must give the same rows and contents as the first directory. Here every table is read, and each content compared
with its SHA-256, without Tidemark. With --bucket the contents are in a bucket of SeaweedFS, otherwise in a directory that servers share.
"""

import hashlib
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import killing
import seaweed
from killing import fail, finish, kill_after

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TOP / "Interop"), str(TOP.parent / "Benchmarks")]
import signals  # noqa: E402
import start_server  # noqa: E402
from runner.postgres import Postgres  # noqa: E402

# Rows that are created anew in each directory: the migrations that were run, and the counters by which readers notice that they have to read the
# access or the schema again.
OWN_ROWS = {"grdb_migrations": "FALSE", "sqlite_sequence": "FALSE", "counters": "NOT (name IN ('schema', 'revision'))"}


def hashed(data):
    """Returns a number for some bytes. The sum of such numbers does not depend on their order."""
    return int.from_bytes(hashlib.sha256(data).digest()[:16])


class Device:
    """A container with a session at the server."""

    def __init__(self, tidemark, folder, name):
        self.tidemark, self.container = tidemark, folder / f"{name}.tidemark"

    def run(self, command, *words, given=None):
        return killing.finish_with([self.tidemark, *command.split(), self.container, *map(str, words)], given)

    def sign_in(self, server, account):
        self.run("account sign-in", "--server", server.url, "--email", account["email"], "--container", start_server.CONTAINER,
                 "--password-stdin", given=account["password"] + "\n")

    def sync_words(self):
        return [self.tidemark, "sync", self.container]

    def count(self):
        return json.loads(self.run("verify", "--json"))["records"]

    def digest(self):
        """Returns a digest of all records and of their assets' contents, in any order."""
        folder = self.container.with_suffix(".exported")
        count = 0
        self.run("export", "--type", "Destination", "--to", folder / "records.jsonl", "--assets", folder / "assets", "--asset-names", "identifier")
        contents = {f"assets/{path.name}": hashed(path.read_bytes()) for path in (folder / "assets").iterdir()}
        total = sum(contents.values())
        with open(folder / "records.jsonl") as file:
            for count, line in enumerate(file, 1):
                row = json.loads(line)
                if "image" in row:
                    row["image"] = contents[row["image"]]
                # The order of fields differs between devices. Only the device that has imported the records knows which column held their names.
                if "id" in row:
                    row["_name"] = f"Destination:{row.pop('id')}"
                total += hashed(json.dumps(row, sort_keys=True).encode())
        shutil.rmtree(folder)
        return f"{count} records and {len(contents)} contents, {total & (1 << 128) - 1:032x}"


def rows_of(directory):
    """Returns a digest of each table of a cloud's databases, which does not depend on the order of rows."""
    found = {}
    for path in sorted(directory.rglob("*.sqlite")):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            database.text_factory = bytes
            tables = [name.decode() for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")]
            for table in tables:
                total, count, columns = 0, 0, {}
                # In access.sqlite the only counter is a column with the name of what it counts.
                named = 'SELECT \'revision\' AS name, * FROM counters' if path.name == "access.sqlite" and table == "counters" else f'SELECT * FROM "{table}"'
                cursor = database.execute(f"SELECT * FROM ({named}) WHERE {OWN_ROWS.get(table, 'TRUE')}")
                for row in cursor:
                    total, count = total + hashed(repr(row).encode()), count + 1
                    columns = dict(zip((column[0] for column in cursor.description), row))
                # The columns of a table with one row are kept, so that a difference can be named.
                found[f"{path.relative_to(directory)} {table}"] = (count, total & (1 << 128) - 1, columns if count == 1 else {})
    return found


def differences(before, after):
    """Returns a description of each table that differs."""
    told = []
    for name in sorted(before.keys() | after.keys()):
        (count, total, columns), (now, sum_now, columns_now) = before.get(name, (0, 0, {})), after.get(name, (0, 0, {}))
        if (count, total) != (now, sum_now):
            columns = [f"{column} {value!r}, then {columns_now.get(column)!r}" for column, value in columns.items() if value != columns_now.get(column)]
            told.append(f"{name}: {'; '.join(columns) or f'{count} rows, then {now}'}")
    return told


def contents_of(directory):
    """Returns the sizes of the assets' contents by their paths in a cloud's directory. Fails if one is not the content that its name says."""
    found = {}
    for path in sorted(directory.glob("containers/*/*/assets/*/??/*")):
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.name:
            fail(f"{path} is not the content of its name")
        found[str(path.relative_to(directory))] = path.stat().st_size
    return found


def check_contents(directory, wanted, what):
    """Checks that a cloud's directory has exactly the contents of another one, and returns how many they are, in words."""
    found = contents_of(directory)
    if found != wanted:
        fail(f"the contents of {what} differ: {len(wanted)} were there, then {len(found)}; of these {len(wanted.items() & found.items())} are equal")
    return f"{len(found):,} contents with {sum(found.values()):,} bytes"


class Contents:
    """The place of the database's asset contents: a directory, or a bucket of SeaweedFS."""

    def __init__(self, folder, is_bucket):
        if is_bucket:
            self.bucket = seaweed.start_bucket(folder)
            self.words = ["--assets", f"s3://{seaweed.BUCKET}/moved", "--s3-endpoint", self.bucket.bucket_endpoint]
            self.environment = self.bucket.environment
        else:
            (folder / "assets").mkdir()
            self.bucket, self.words, self.environment = None, ["--assets", str(folder / "assets")], {}

    def end(self):
        if self.bucket:
            self.bucket.end(kills=True)


class Moves:
    def __init__(self, options, drawn, contents):
        self.options, self.drawn, self.contents, self.kills = options, drawn, contents, 0

    def move(self, source, target):
        """Moves a cloud, kills the move several times while it runs, lets it end at last, and returns its summary."""
        command = [self.options.tidemark, "admin", "move", "--from", source, "--to", target, *self.contents.words, "--json"]
        command = list(map(str, command))
        began, killed, whole = time.monotonic(), 0, self.options.records / 20_000
        while killed < self.options.kills:
            if not kill_after(command, self.drawn.uniform(0.03, 0.15) * whole + 0.3, self.contents.environment):
                fail(f"the move of {source} to {target} had ended before it was killed {self.options.kills} times; take more --records")
            killed += 1
        summary = json.loads(finish(command, self.contents.environment))
        self.kills += killed
        if summary["problems"]:
            fail(f"the move of {source} to {target} told of {summary['problems']}")
        print(f"moved {summary['records']:,} records and {summary['assets']:,} contents to {'a database' if str(target).startswith('postgres') else 'a directory'} "
              f"in {time.monotonic() - began:.0f} s, killed {killed} times", flush=True)
        return summary


def write_manifest(folder, records, pictures):
    """Writes records like those of a journal, some of them with pictures, and returns the manifest's path."""
    (folder / "pictures").mkdir()
    for number in range(pictures):
        (folder / "pictures" / f"{number}.png").write_bytes(killing.picture(number, 20_000 + number * 997 % 300_000))
    with open(folder / "journal.jsonl", "w") as file:
        for number in range(records):
            row = {"id": f"r{number}", "caption": f"Place {number}", "stars": number % 6, "details": f"the harbour lay quiet under grey light, and gulls {number}"}
            if number < pictures:
                row["image"] = f"pictures/{number}.png"
            file.write(json.dumps(row) + "\n")
    return folder / "journal.jsonl"


def wait_until_unused(postgres):
    """Waits until no server is connected to the database. Connections end a few moments after their server."""
    for _ in range(200):
        if postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'tidemark' AND pid <> pg_backend_pid()", "postgres") == "0":
            return
        time.sleep(0.05)
    fail("the server's connections stay")


def run(options, folder, drawn, postgres, contents, servers):
    cloud = start_server.Cloud(options.tidemark, folder)
    cloud.add_container(start_server.CONTAINER)
    account = cloud.add_account("anna")
    moves = Moves(options, drawn, contents)
    first, second, third = (Device(options.tidemark, folder, name) for name in ("first", "second", "third"))

    def serve(place, port=0):
        servers.append(start_server.Server(
            options.server, folder, place, *start_server.UNLIMITED, "--log-level", "warning", port=port, environment=contents.environment))
        return servers[-1]

    server = serve(cloud.data)
    manifest = write_manifest(folder, options.records, options.pictures)
    finish([options.tidemark, "import", manifest, "--into", first.container, "--type", "Destination", "--id", "id", "--asset", "image"])
    for device in (first, second, third):
        device.sign_in(server, account)
    began = time.monotonic()
    first.run("sync")
    print(f"sent {options.records:,} records in {time.monotonic() - began:.0f} s", flush=True)
    # A fetch of everything takes about as long as sending it took.
    sending = time.monotonic() - began
    if not kill_after(second.sync_words(), sending / 4):
        fail("the second device was not in the middle of a sync; take more --records")
    fetched = second.count()
    print(f"the second device has {fetched:,} records, and is killed", flush=True)
    port = server.port
    server.stop()

    before, sent = rows_of(cloud.data), contents_of(cloud.data)
    if len(sent) != options.pictures:
        fail(f"the cloud has {len(sent)} contents of {options.pictures}")
    database = moves.move(cloud.data, postgres.address)
    wait_until_unused(postgres)
    # A move back at once has to give the same rows.
    unchanged = folder / "unchanged"
    returned = moves.move(postgres.address, unchanged)
    if database["digest"] != returned["digest"]:
        fail(f"the digests differ: {database['digest']} and {returned['digest']}")
    told = differences(before, rows_of(unchanged))
    print(f"digests of the rows are equal ({database['digest'][:16]}…); tables of both directories that differ: {'; '.join(told) or 'none'}", flush=True)
    if told:
        fail("the directories differ")
    print(f"both directories have {check_contents(unchanged, sent, 'both directories')}, each of its SHA-256", flush=True)
    shutil.rmtree(unchanged)

    wait_until_unused(postgres)
    place = ["--database", postgres.address, *contents.words]
    server = serve(place, port)
    finish(second.sync_words())
    first.run("records set", "Destination:r1", "caption=over the database")
    first.run("sync")
    if not kill_after(third.sync_words(), sending / 4):
        fail("the third device was not in the middle of a sync")
    print(f"over the database the second device has come to {second.count():,} records; the third has {third.count():,}, and is killed", flush=True)
    server.stop()
    wait_until_unused(postgres)

    back = folder / "back"
    moves.move(postgres.address, back)
    server = serve(back, port)
    second.run("records set", "Destination:r2", "caption=over the directory")
    for device in (second, third, first, second, third):
        finish(device.sync_words())
    digests = {device.digest() for device in (first, second, third)}
    if len(digests) != 1 or not next(iter(digests)).startswith(f"{options.records} records and {options.pictures} contents"):
        fail(f"the devices differ: {digests}")
    for device in (first, second, third):
        device.run("verify")
    server.stop()
    finish([options.tidemark, "admin", "verify", "--data", back])
    print(f"the directory has {check_contents(back, sent, 'the directory')}, each of its SHA-256", flush=True)
    print(f"{moves.kills} kills of moves, 2 of devices: three devices have the same {next(iter(digests))}; nothing is damaged", flush=True)


def main():
    parser = killing.parser(__doc__, 3, 1_000_000, 500)
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server")
    parser.add_argument("--bucket", action="store_true", help="have the contents of assets in a bucket of SeaweedFS (a directory)")
    options = parser.parse_args()
    signals.end_in_order()
    _, drawn = killing.draw(options)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-move-", dir=options.folder))
    # The user who runs the database and the bucket has to reach their files below this folder.
    folder.chmod(0o755)
    postgres, contents, servers = None, None, []
    try:
        postgres = Postgres(folder / "postgres")
        contents = Contents(folder, options.bucket)
        run(options, folder, drawn, postgres, contents, servers)
    finally:
        for server in servers:
            server.stop()
        if contents:
            contents.end()
        if postgres:
            postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
