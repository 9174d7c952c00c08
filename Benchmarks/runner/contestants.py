"""The contestants: their commands, their inputs, and the results that they must have."""

import json
import os
import shutil
import sqlite3
import subprocess

from .measuring import Failure, measure, say
from .preparing import BENCHMARKS, SEED, make_data

PEERS = BENCHMARKS / "Peers"
PAGE_SIZE_SMALL = 4096
SCHEMA = "store.sql"
PYTHON_PEERS = ("python", "duckdb", "sqlite-utils")


class Step:
    """One measured command: its name, a function that makes it, the inputs to warm, and the check of its result."""

    def __init__(self, name, command, inputs, check, title, inner=False, rounds=None):
        self.name, self.command, self.inputs, self.check, self.title = name, command, inputs, check, title
        # Whether the program measures itself. What it does before its clock starts is not part of the job.
        self.inner = inner
        # How many rounds the step takes part in; None for all.
        self.rounds = rounds


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f"{what}: found {found}, not {wanted}")


def check_tidemark(**wanted):
    def check(name, output, folder):
        try:
            summary = json.loads(output)
        except ValueError:
            raise Failure(f"{name} printed no JSON object:\n{output[-2000:]}")
        wanted_all = {"read": 0, "inserted": 0, "updated": 0, "unchanged": 0, "rejected": 0, **wanted}
        expect(name, {key: summary.get(key) for key in wanted_all}, wanted_all)
    return check


def check_floor(rows):
    def check(name, output, folder):
        expect(f"{name}, rows", int(output.split()[2]), rows)
    return check


def check_sqlite(rows):
    def check(name, output, folder):
        database = sqlite3.connect(folder / "database")
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        quoted = ['"' + table.replace('"', '""') + '"' for table in tables]
        counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in quoted]
        database.close()
        expect(f"{name}, rows of its largest table", max(counts, default=0), rows)
    return check


def check_duckdb(python, rows):
    def check(name, output, folder):
        count = "import duckdb, sys; print(*duckdb.connect(sys.argv[1]).execute('SELECT count(*) FROM records').fetchone())"
        found = subprocess.run([python, "-c", count, folder / "database"], capture_output=True, text=True)
        if found.returncode != 0:
            raise Failure(f"{name}: its rows can't be counted\n{found.stderr[-2000:]}")
        expect(f"{name}, rows", int(found.stdout), rows)
    return check


def check_files(files):
    def check(name, output, folder):
        expect(f"{name}, files", sum(len(names) for _, _, names in os.walk(folder / "pictures")), files)
    return check


class Contest:
    """All contestants, as chains of steps. The steps of a chain share a folder, which is empty at first."""

    def __init__(self, options, data, made, binaries, venv, page_size):
        self.options, self.data, self.made, self.page_size = options, data, made, page_size
        self.floor, self.core = binaries / "floor", binaries / "core"
        # The SQL of a store's tables, which `probe` writes.
        self.schema = binaries / SCHEMA
        # The reasons for which peers could not be built or installed, by the beginnings of their names.
        self.missing = {}
        self.python = venv / "bin" / "python"

    def import_step(self, name, title, manifest, images, **counts):
        def command(folder):
            asset = ["--asset", "image"] if images else []
            return [self.options.tidemark, "import", manifest, "--into", folder / "journal.tidemark", "--type", "Destination",
                    "--id", "id", *asset, "--json"]

        inputs = [manifest, self.data / "pictures"] if images else [manifest]
        return Step(name, command, inputs, check_tidemark(**counts), title)

    def pictures_step(self, name, title, pictures):
        def command(folder):
            return [self.options.tidemark, "import", self.data / "pictures", "--into", folder / "photos.tidemark", "--type",
                    "Photo", "--format", "photos", "--json"]

        return Step(name, command, [self.data / "pictures"], check_tidemark(read=pictures, inserted=pictures), title)

    def rows_step(self, name, title, program, subcommand, page_size):
        records = self.made["records"]

        def command(folder):
            schema = ["--schema", self.schema] if program == self.core else []
            return [program, subcommand, folder / "database", "--records", records, "--page-size", page_size, "--seed", SEED, *schema]

        return Step(name, command, [], check_floor(records), title, inner=True)

    def files_step(self, name, title, program, subcommand):
        images = self.data / "pictures"

        def command(folder):
            return [program, subcommand, images, *([folder / "place"] if subcommand == "intake" else []), "--threads", 2]

        return Step(name, command, [images], check_floor(self.made["pictures"]), title, inner=True)

    def chains(self):
        records, pictures = self.made["records"], self.made["pictures"]
        changed, same = self.made["changed"], records - self.made["changed"]
        data, images = self.data, self.data / "pictures"
        plain, plain_changed = data / "records-nopictures.jsonl", data / "records-nopictures-changed.jsonl"
        full, full_changed, table = data / "records.jsonl", data / "records-changed.jsonl", data / "records.csv"
        size = f"{self.page_size // 1024} KiB"
        tidemark, rows, floor, core = self.import_step, self.rows_step, self.floor, self.core

        yield [
            tidemark("tidemark-records", "tidemark, records only", plain, False, read=records, inserted=records),
            tidemark("tidemark-records-again", "… again, unchanged", plain, False, read=records, unchanged=records),
            tidemark("tidemark-records-changed", "… 10% changed", plain_changed, False, read=records,
                     updated=changed, unchanged=same),
        ]
        yield [
            rows("core-insert", f"core: insert, {size} pages", core, "insert", self.page_size),
            rows("core-unchanged", f"core: the same again, {size}", core, "unchanged", self.page_size),
            rows("core-update", f"core: one field of all changed, {size}", core, "update-one-field", self.page_size),
        ]
        yield [
            rows("floor-insert", f"floor: insert, {size} pages", floor, "insert", self.page_size),
            rows("floor-unchanged", f"floor: look up and compare, {size}", floor, "unchanged", self.page_size),
            rows("floor-update", f"floor: update one field of all, {size}", floor, "update-one-field", self.page_size),
        ]
        if self.page_size != PAGE_SIZE_SMALL:
            yield [rows("floor-insert-4k", "floor: insert, 4 KiB pages", floor, "insert", PAGE_SIZE_SMALL)]
        yield [
            tidemark("tidemark-whole", "tidemark, records and pictures", full, True, read=records, inserted=records),
            tidemark("tidemark-whole-again", "… again, unchanged", full, True, read=records, unchanged=records),
            tidemark("tidemark-whole-changed", "… 10% changed", full_changed, True, read=records, updated=changed,
                     unchanged=same),
        ]
        yield [Step("floor-whole", lambda folder: [floor, "whole", full, folder / "journal"], [full, images],
                    check_floor(records), "floor: the whole job, 16 KiB pages")]
        yield [self.pictures_step("tidemark-pictures", "tidemark, pictures only", pictures)]
        yield [Step("copy-pictures", lambda folder: [PEERS / "copy-pictures.sh", images, folder / "pictures"], [images],
                    check_files(pictures), "cp -r and sync of the pictures")]
        for name, program in (("core", core), ("floor", floor)):
            yield [self.files_step(f"{name}-intake", f"{name}: intake of the pictures, 2 threads", program, "intake")]
            yield [self.files_step(f"{name}-hash", f"{name}: read and hash the pictures, 2 threads", program, "hash")]
        yield [Step("python-orjson", lambda folder: [self.python, PEERS / "python_orjson.py", plain, folder / "database"],
                    [plain], check_sqlite(records), "Python sqlite3 with orjson")]
        yield [Step("sqlite3-import", lambda folder: [PEERS / "sqlite3-import.sh", table, folder / "database"], [table],
                    check_sqlite(records), "sqlite3 shell, .import of CSV")]

        def duckdb(*more):
            return lambda folder: [self.python, PEERS / "duckdb_json.py", plain, folder / "database", *more]

        check = check_duckdb(self.python, records)
        yield [
            Step("duckdb", duckdb(), [plain], check, "DuckDB read_json, primary key"),
            Step("duckdb-upsert", duckdb("--upsert"), [plain], check, "… again as an upsert"),
            Step("duckdb-upsert-detected", duckdb("--upsert", "--detect"), [plain], check, "… the same, types detected",
                 rounds=1),
        ]
        yield [Step("grdb", lambda folder: [self.options.grdb_peer, plain, folder / "database"], [plain], check_sqlite(records),
                    "GRDB, Codable records")]
        yield [Step("sqlite-utils", lambda folder: [PEERS / "sqlite-utils.sh", plain, folder / "database"], [plain],
                    check_sqlite(records), "sqlite-utils insert")]

    def large_chains(self, folder, records):
        """Yields the large import, and the small one with which it is compared."""
        plain, small, count = self.data / "records-nopictures.jsonl", self.made["records"], f"{records:,}"
        large = folder / "records-nopictures.jsonl"
        yield [self.import_step("tidemark-beside-large", "tidemark, records only, beside the next", plain, False, read=small,
                                inserted=small)]
        yield [self.import_step("tidemark-large", f"tidemark, {count} records", large, False, read=records, inserted=records)]

    def absent(self, step):
        """Returns why a contestant can't take part, or None."""
        if step.name.startswith("tidemark") and not self.options.tidemark:
            return "no --tidemark"
        if step.name == "core-insert" and not self.options.tidemark:
            return "no --tidemark, whose stores show the tables"
        if step.name == "sqlite3-import" and not shutil.which("sqlite3"):
            return "no sqlite3 shell; on Debian, as root: apt-get install sqlite3"
        return next((reason for prefix, reason in self.missing.items() if step.name.startswith(prefix)), None)


def run_chain(chain, round_number, scratch, trash, environment, results):
    folder = scratch / chain[0].name
    trash.put(folder)
    folder.mkdir(parents=True)
    for step in chain:
        if step.rounds is not None and round_number >= step.rounds:
            continue
        result = measure(step.command(folder), step.inputs, environment)
        step.check(step.name, result["output"], folder)
        result["process"] = result["seconds"]
        if step.inner:
            result["seconds"] = float(result["output"].split()[1])
        results[step.name] = result
        say(f"  {step.name:26} {result['seconds']:8.3f} s  {result['processor']:7.2f} s  {result['peak'] / 1e6:6.0f} MB")
    trash.put(folder)


def schema_of(path):
    """The SQL that makes a store's tables, with its first record type; the index on the names is left to whoever loads records."""
    database = sqlite3.connect(path)
    made = database.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'tide_name_%'"
        " ORDER BY type <> 'table', rowid").fetchall()
    types = database.execute("SELECT * FROM tide_types WHERE id = 1")
    columns = [column[0] for column in types.description]
    values = [database.execute("SELECT quote(?)", (value,)).fetchone()[0] for value in types.fetchone()]
    database.close()
    inserted = f"INSERT INTO tide_types ({', '.join(columns)}) VALUES ({', '.join(values)})"
    return "".join(f"{sql};\n" for sql in [*(row[0] for row in made), inserted])


def probe(options, binaries, scratch, trash, environment):
    """Imports small journals before anything is measured, to know that the program works, the store's page size, and its tables,
    which the core's contestants make as they are."""
    folder = scratch / "probe"
    trash.put(folder)
    made = make_data(binaries, folder / "data", 200, 2)
    contest = Contest(options, folder / "data", made, binaries, folder, PAGE_SIZE_SMALL)
    store = folder / "whole"
    store.mkdir()
    full = folder / "data" / "records.jsonl"
    bare = folder / "bare"
    bare.mkdir()
    counts = {"read": made["records"], "inserted": made["records"]}
    for step, place in ((contest.import_step("tidemark-whole", "", full, True, **counts), store),
                        (contest.import_step("tidemark-records", "", folder / "data" / "records-nopictures.jsonl", False, **counts), bare)):
        step.check(step.name, measure(step.command(place), step.inputs, environment)["output"], place)
        if not (place / "journal.tidemark" / "private.sqlite").exists():
            raise Failure("the import left no private.sqlite in the container")
    contest.schema.write_text(schema_of(bare / "journal.tidemark" / "private.sqlite"))
    header = (store / "journal.tidemark" / "private.sqlite").read_bytes()[:18]
    page_size = int.from_bytes(header[16:18], "big")
    trash.put(folder)
    return 65536 if page_size == 1 else page_size
