#!/usr/bin/env python3
"""Measures how the cost of a request grows with a cloud over PostgreSQL: look-ups, saves of 200 records, and pages of changes. See README.md.

Three databases of one PostgreSQL are filled with rows like those of the server: one with few owners, one with many, and one with a single owner who
has as many records. A server runs over each. A client sends requests to them in turns, each for another owner and other records.
"""

import argparse
import json
import pathlib
import random
import shutil
import statistics
import sys
import time

import server
from runner.asking import Asker
from runner.filling import Filling, name_of
from runner.goals import Goals
from runner.measuring import Failure, say
from runner.postgres import Postgres
from server import BATCH, signals, start_server

BASE = f"/database/1/{start_server.CONTAINER}/development/private"
ZONE = "shown"
FEW, MANY, LARGE = "few", "many", "large"
MEASURES = {"look-up": "a look-up of one record", "save": f"a save of {BATCH} records", "news": f"the {BATCH} changes since a token",
            "page": f"a page of {BATCH} changes of a zone, from its beginning on"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool, release build")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server, release build")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where databases and programs go; 20 GB for the full sizes")
    parser.add_argument("--owners", type=int, default=10_000, metavar="N", help="owners of the database with many (10,000)")
    parser.add_argument("--records", type=int, default=1_000, metavar="N", help="records of each owner (1,000)")
    parser.add_argument("--large", type=int, default=10_000_000, metavar="N", help="records of the one owner with many (10,000,000)")
    parser.add_argument("--few", type=int, default=100, metavar="N", help="owners of the database that the others are compared with (100)")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="rounds (7)")
    parser.add_argument("--smoke", action="store_true", help="measure everything once with little, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    if options.smoke:
        options.owners, options.large, options.few, options.runs = 20, 2_000, 5, 1
    return options


class Size:
    """One of the databases, and the server over it."""

    def __init__(self, options, load, postgres, name, owners, records, data):
        self.name, self.owners, self.records = name, owners, records
        postgres.sql(f"CREATE DATABASE {name}", "postgres")
        assets = data / f"growth-assets-{name}"
        shutil.rmtree(assets, ignore_errors=True)
        assets.mkdir()
        address = postgres.address.rsplit("/", 1)[0] + "/" + name
        cloud = start_server.Cloud(options.tidemark, data / f"growth-{name}", ["--database", address, "--assets", assets])
        self.bench = server.Bench(options, load, data / f"growth-{name}", cloud)
        self.bench.run("modify", records=1000, connections=1, zone=ZONE, answer="tags")
        self.bench.server.stop()
        began = time.monotonic()
        filling = Filling(postgres, name, ZONE)
        self.field_bytes = filling.field_bytes
        self.accounts = filling.add(owners, records)
        self.bytes = int(postgres.sql(f"SELECT pg_database_size('{name}')"))
        say(f"{name}: {owners:,} × {records:,} records, {self.bytes / 1e9:.1f} GB, filled in {time.monotonic() - began:.0f} s")
        # A new server, because the first one keeps what it has looked up when the database was small.
        self.bench.server = start_server.Server(
            options.server, data / f"growth-{name}", cloud.place, *start_server.UNLIMITED, "--log-level", "warning", environment=cloud.environment)
        self.made = 0

    def operations(self):
        """Returns the operations of a save of new records."""
        self.made += BATCH
        fields = {"caption": {"value": "Place", "type": "STRING"}, "details": {"value": "the harbour lay quiet under grey light and gulls " * 6, "type": "STRING"}}
        return [{"operationType": "create", "record": {"recordName": name_of(1 << 40 | self.made + index).decode(), "recordType": "Destination", "fields": fields}}
                for index in range(BATCH)]

    def measure(self, drawn, options):
        """Returns the milliseconds of each kind of request."""
        # The server closes idle connections after some seconds, so each round has a new one.
        self.asker = Asker(self.bench.server.port, BASE)
        took, zone = {name: [] for name in MEASURES}, {"zoneName": ZONE}
        times = 2 if options.smoke else 10
        for _ in range(times * 40):
            account, name = drawn.choice(self.accounts), name_of(drawn.randrange(self.records)).decode()
            found, one = self.asker.ask("/records/lookup", {"zoneID": zone, "records": [{"recordName": name}]}, account.token)
            if found["records"][0]["recordName"] != name or not found["records"][0]["fields"]:
                raise Failure(f"another record was found: {found}")
            took["look-up"].append(one)
        for _ in range(times):
            account, token = drawn.choice(self.accounts), None
            for _ in range(3):
                page = {"zoneID": zone, "resultsLimit": BATCH} | ({"syncToken": token} if token else {})
                found, one = self.asker.ask("/changes/zone", {"zones": [page]}, account.token)
                token = found["zones"][0]["syncToken"]
                if len(found["zones"][0]["records"]) != BATCH:
                    raise Failure(f"a page has {len(found['zones'][0]['records'])} records")
                took["page"].append(one)
            # The changes that a device fetches after one save of another device.
            save = lambda: self.asker.ask("/records/modify?getCurrentSyncToken=true", {"zoneID": zone, "atomic": True, "desiredKeys": [], "operations": self.operations()}, account.token)
            found, one = save()
            token = found["syncToken"]
            took["save"].append(one)
            took["save"].append(save()[1])
            found, one = self.asker.ask("/changes/zone", {"zones": [{"zoneID": zone, "syncToken": token, "resultsLimit": BATCH}]}, account.token)
            if len(found["zones"][0]["records"]) != BATCH:
                raise Failure(f"{len(found['zones'][0]['records'])} records are new")
            took["news"].append(one)
        return {name: statistics.median(values) for name, values in took.items()}


def print_table(report, options):
    goals = Goals("growth.py", options.smoke)
    goals.heading()
    sizes = {FEW: f"{options.few:,} owners × {options.records:,} records", MANY: f"{options.owners:,} owners × {options.records:,}", LARGE: f"one owner with {options.large:,}"}
    for measure, words in MEASURES.items():
        goals.line(f"{words}: {sizes[FEW]}", report[f"{measure}, {FEW}"], unit=" ms")
        for name in (MANY, LARGE):
            goals.line(f"  {sizes[name]}", report[f"{measure}, {name}"], unit=" ms")
            goals.line(f"  ÷ {options.few:,} owners", report[f"{measure}, {name} ÷ {FEW}"], "≤ 1.5", lambda it: it <= 1.5)
    return goals


def main():
    options = parse_arguments()
    signals.end_in_order()
    options.data.mkdir(parents=True, exist_ok=True)
    data = options.data.resolve()
    load, report, postgres, sizes = server.build(data / "bin"), {}, None, []
    try:
        postgres = Postgres(data / "growth-postgres", ["max_connections = 200"])
        for name, owners, records in ((FEW, options.few, options.records), (MANY, options.owners, options.records), (LARGE, 1, options.large)):
            sizes.append(Size(options, load, postgres, name, owners, records, data))
        drawn = random.Random(1)
        # The first round fills caches, and does not count.
        for round in range(options.runs + 1):
            found = {size.name: size.measure(drawn, options) for size in drawn.sample(sizes, len(sizes))}
            if round == 0:
                continue
            for name, values in found.items():
                for measure, value in values.items():
                    report.setdefault(f"{measure}, {name}", []).append(value)
                    if name != FEW:
                        report.setdefault(f"{measure}, {name} ÷ {FEW}", []).append(value / found[FEW][measure])
            say(f"round {round} of {options.runs}")
        for size in sizes:
            report[f"bytes, {size.name}"] = [size.bytes]
    except Failure as error:
        sys.exit(f"growth.py: {error}")
    finally:
        for size in sizes:
            size.bench.server.stop()
        if postgres:
            postgres.stop()
        for left in data.glob("growth-*"):
            shutil.rmtree(left, ignore_errors=True)
    goals = print_table(report, options)
    if options.json:
        about = {"few": options.few, "owners": options.owners, "records": options.records, "large": options.large,
                 "fieldBytes": sizes[0].field_bytes}
        options.json.write_text(json.dumps(about | report, indent=1, sort_keys=True, ensure_ascii=False))
    goals.end()


if __name__ == "__main__":
    main()
