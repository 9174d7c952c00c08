#!/usr/bin/env python3
"""Measures a cloud over PostgreSQL: one server, the database and the clients on the same cores, commits durable. See README.md.

Beside rates and latencies it measures the cost of a request: processor time of the server and of the database, and bytes of the database's log. The
floor is PostgreSQL alone, with an upsert of as many rows by a statement that generates them. With a second server over the same database it measures
how soon a device that waits there hears of a save through the first.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import threading
import time

import server
from runner.asking import Asker
from runner.goals import Goals
from runner.locks import LockWatch
from runner.measuring import Failure
from runner.postgres import Postgres
from runner.waking import Wakings, percentile
from server import BATCH, signals, start_server

# Records of a small save.
FEW = 5
# Numbers of owners that write at the same time.
WRITERS = (1, 2, 4, 8)
# Half of the records that a server should save in a second.
HALF = 6_000

FLOOR = f"""
INSERT INTO floor (owner, name, fields, changed)
SELECT :client_id, decode(md5(random()::text), 'hex'), convert_to(repeat(md5(random()::text), 36), 'UTF8'), number
FROM unnest(array(SELECT generate_series(1, {BATCH}))) AS number
ON CONFLICT (owner, name) DO UPDATE SET fields = excluded.fields, changed = excluded.changed;
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool, release build")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server, release build")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where databases and programs go")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="rounds, each with a fresh database (3)")
    parser.add_argument("--seconds", type=float, default=8, metavar="N", help="of each measurement (8)")
    parser.add_argument("--records", type=int, default=100_000, metavar="N", help="records that are looked up (100,000)")
    parser.add_argument("--wakings", type=int, default=250, metavar="N", help="saves that a device at another server waits for (250)")
    parser.add_argument("--smoke", action="store_true", help="measure everything once with little, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.seconds, options.records, options.wakings = 1, 1, 1_000, 5
    return options


class Costs:
    """What the server and the database use between the creation of this object and ``note``."""

    def __init__(self, bench, database):
        self.bench, self.database = bench, database
        self.begun = self.now()

    def now(self):
        return self.bench.processor(), self.database.processor(), self.database.log_position()

    def note(self, report, name, count):
        used = [after - before for before, after in zip(self.begun, self.now())]
        for what, value in zip(("µs of the server's processor", "µs of the database's processor", "bytes of the log"), (used[0] * 1e6, used[1] * 1e6, used[2])):
            report.setdefault(f"{name}, {what}", []).append(value / max(1, count))


def measure(bench, other, database, options, report):
    """Measures one round on a fresh database."""
    seconds = options.seconds
    note = lambda name, value: report.setdefault(name, []).append(value)
    bench.run("modify", records=options.records, connections=4, zone="shown", answer="tags")
    costs = Costs(bench, database)
    done = bench.run("modify", connections=4, seconds=seconds, first=10_000_000, answer="tags")
    note("modify, records/s", done["records/s"])
    costs.note(report, "modify", done["records"])
    first = done["next"]
    costs = Costs(bench, database)
    done = bench.run("lookup", connections=16, seconds=seconds, zone="shown", records=options.records)
    note("lookup, requests/s", done["requests/s"])
    costs.note(report, "lookup", done["requests"])
    measure_small(bench, database, options, report, first)
    done = bench.run("lookup", connections=64, seconds=seconds, rate=2_000, zone="shown", records=options.records)
    note("lookup at 2,000/s, p50", done["p50"])
    note("lookup at 2,000/s, p99", done["p99"])
    done = bench.run("modify", connections=16, seconds=seconds, rate=HALF / BATCH, first=first)
    note(f"modify at {HALF:,} records/s, p50", done["p50"])
    note(f"modify at {HALF:,} records/s, p99", done["p99"])
    first = done["next"]
    # An owner alone, and then beside another who writes as fast as possible.
    alone = bench.run("modify", connections=4, seconds=seconds, rate=10, batch=20, first=first)
    flood = other.start("modify", connections=4, seconds=seconds + 3, answer="tags")
    beside = bench.run("modify", connections=4, seconds=seconds, rate=10, batch=20, first=alone["next"])
    flooding = other.finish(flood, "modify")
    note("an owner alone, p50", alone["p50"])
    note("an owner beside a flood, p50", beside["p50"])
    note("an owner alone, p99", alone["p99"])
    note("an owner beside a flood, p99", beside["p99"])
    for share in ("p50", "p99"):
        note(f"an owner beside a flood ÷ alone, {share}", beside[share] / alone[share])
    note("the flood, records/s", flooding["records/s"])
    note("peak memory, MB", bench.peak)


def small_save(count):
    """Returns a request that saves `count` records of 1.1 KB each."""
    return {"zoneID": {"zoneName": "load"}, "desiredKeys": [], "operations": [{"operationType": "create", "record": {"recordType": "Destination", "fields": {
        "details": {"value": "the harbour lay quiet under grey light and gulls " * 22, "type": "STRING"}}}}] * count}


def measure_small(bench, database, options, report, first):
    """Measures the cheap and frequent requests: saves of a few records, fetches of these by another device, and fetches without anything new."""
    costs = Costs(bench, database)
    done = bench.run("modify", connections=4, seconds=options.seconds / 2, batch=FEW, first=first + (1 << 32), answer="tags")
    costs.note(report, "few", done["requests"])
    asker, zone = Asker(bench.server.port, f"/database/1/{start_server.CONTAINER}/development/private"), {"zoneName": "load"}
    save = small_save(FEW)
    before, _ = asker.ask("/records/modify?getCurrentSyncToken=true", save, bench.token)
    after, _ = asker.ask("/records/modify?getCurrentSyncToken=true", save, bench.token)
    for name, token, count in (("news", before["syncToken"], FEW), ("nothing", after["syncToken"], 0)):
        times, took = int(options.seconds * 125), []
        costs = Costs(bench, database)
        for _ in range(times):
            found, one = asker.ask("/changes/zone", {"zones": [{"zoneID": zone, "syncToken": token}]}, bench.token)
            took.append(one)
        if len(found["zones"][0]["records"]) != count:
            raise Failure(f"{len(found['zones'][0]['records'])} records are new, and not {count}")
        costs.note(report, name, times)
        report.setdefault(f"{name}, p50", []).append(statistics.median(took))
    report.setdefault("connections", []).append(int(database.sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")))


def measure_wakings(bench, options, report):
    """Measures how soon a device that waits at a second server over the same database hears of a save through the first."""
    folder = bench.place / "second"
    folder.mkdir()
    second = start_server.Server(
        options.server, folder, bench.cloud.place, *start_server.UNLIMITED, "--log-level", "warning", environment=bench.cloud.environment)
    try:
        wakings = Wakings(bench.server.port, second.port, f"/{start_server.CONTAINER}/development/private", bench.token)
        answered, sent = wakings.measure(options.wakings, small_save(1))
    finally:
        second.stop()
    for name, values in (("heard at another server", answered), ("heard at another server since it was sent", sent)):
        for share, of in (("p50", 0.5), ("p99", 0.99), ("max", 1)):
            report.setdefault(f"{name}, {share}", []).append(percentile(values, of))
    report.setdefault("heard at another server, saves", []).append(len(answered))
    report.setdefault("woken at another server in vain", []).append(wakings.in_vain)


# Changes a row, and holds its lock until another session has waited for a second.
HELD_ROW = """
BEGIN;
UPDATE watched SET number = 2;
DO $$ BEGIN
    FOR turn IN 1..200 LOOP
        EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid');
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
SELECT pg_sleep(1);
COMMIT;
"""


def check_watch(database):
    """Checks the watch of the locks: it must see that two sessions that change one row wait for each other."""
    database.sql("CREATE TABLE watched AS SELECT 1 AS number")
    holder = threading.Thread(target=database.sql, args=(HELD_ROW,))
    holder.start()
    time.sleep(0.5)
    watch = LockWatch(database, 5)
    database.sql("UPDATE watched SET number = 3")
    holder.join()
    found = watch.end()
    database.sql("DROP TABLE watched")
    if not found["shared"] or not found["waited"] or found["busy"] < 2:
        raise Failure(f"the watch of the locks does not see a session that waits for another: {found}")


def measure_writers(owners, database, options, report):
    """Measures owners who write at the same time, with one request each. A wait for a lock is then always a wait for another owner."""
    if not options.smoke:
        check_watch(database)
    for count in WRITERS:
        writing = [owner.start("modify", connections=1, seconds=options.seconds, answer="tags", first=count * 10_000_000) for owner in owners[:count]]
        watch = LockWatch(database, options.seconds)
        done = [owner.finish(process, "modify") for owner, process in zip(owners, writing)]
        found = watch.end()
        note = lambda name, value: report.setdefault(f"{count} owners write, {name}", []).append(value)
        note("records/s", sum(it["records/s"] for it in done))
        note("p50", max(it["p50"] for it in done))
        note("samples of the locks", found["samples"])
        note("locks seen", found["locks"])
        note("sessions with locks at one moment", found["busy"] or 0)
        if not options.smoke and (not found["locks"] or (count > 1 and found["busy"] < 2)):
            raise Failure(f"of {count} owners who write, the watch has seen {found['locks']} locks of {found['busy']} sessions at one moment")
        note("locks that two owners share", len(found["shared"]) + sum(it["samples"] for it in found["waited"]))
        note("samples in which a page's appending is waited for", found["extending"])
        note("share of time in LWLocks", found["waits"].get("LWLock", 0))
        if found["shared"] or found["waited"]:
            report.setdefault("shared locks", []).append(found["shared"] + found["waited"])
            print(f"cluster.py: locks of {count} owners: {found['shared'] + found['waited']}", file=sys.stderr)
    # All owners together save half of the records that the server should save.
    rate = HALF / BATCH / len(owners)
    writing = []
    for owner in owners:
        writing.append(owner.start("modify", connections=2, seconds=options.seconds, rate=rate, first=100_000_000))
        # The owners begin at different times. Otherwise they would send all their batches at the same moment, again and again.
        time.sleep(1 / rate / len(owners))
    done = [owner.finish(process, "modify") for owner, process in zip(owners, writing)]
    for name in ("p50", "p99"):
        report.setdefault(f"{len(owners)} owners at {HALF:,} records/s, {name}", []).append(max(it[name] for it in done))


def measure_floor(database, options, report):
    database.sql("CREATE TABLE floor (owner int, name bytea, fields bytea, changed bigint, PRIMARY KEY (owner, name))")
    rate = database.bench(FLOOR, max(1, int(options.seconds)), 4)
    report.setdefault("floor, records/s", []).append(rate * BATCH)
    report.setdefault("modify ÷ floor", []).append(report["modify, records/s"][-1] / (rate * BATCH))


class Other(server.Bench):
    """Another account on the same server."""

    def __init__(self, bench, account):
        self.options, self.load, self.place, self.server, self.peak = bench.options, bench.load, bench.place, bench.server, 0.0
        self.enter(account, ["load"])


def print_table(report, options):
    goals = Goals("cluster.py", options.smoke)
    goals.heading()

    def row(key, name, *rest, **more):
        if key in report:
            goals.line(name, report[key], *rest, **more)

    row("modify, records/s", f"modify in batches of {BATCH}", "≥ 12,000 records/s", lambda it: it >= 12_000, unit="/s")
    row("floor, records/s", "PostgreSQL alone, upserts as large", unit="/s")
    row("modify ÷ floor", "  ÷ PostgreSQL alone", "≥ 0.6", lambda it: it >= 0.6)
    row("lookup, requests/s", "look-ups of one record", "≥ 4,000/s", lambda it: it >= 4_000, unit="/s")
    for name, words in (("modify", "a record that is saved"), ("lookup", "a look-up"), ("few", f"a save of {FEW} records"),
                        ("news", f"{FEW} new records fetched"), ("nothing", "asking what is new, and nothing is")):
        row(f"{name}, µs of the server's processor", f"{words}: the server's processor", unit=" µs")
        row(f"{name}, µs of the database's processor", "  the database's processors", unit=" µs")
        row(f"{name}, bytes of the log", "  the database's log", unit=" bytes")
    row("connections", "connections of the server to the database")
    for what, name in (("lookup at 2,000/s", "look-ups, 2,000/s"), ("modify at 6,000 records/s", "modify, 6,000 records/s")):
        row(f"{what}, p50", f"{name}, p50", unit=" ms")
        row(f"{what}, p99", f"{name}, p99", "≤ 30 ms", lambda it: it <= 30, unit=" ms")
    row("heard at another server, p50", "a save's answer until who waits at another server hears of it, p50", unit=" ms")
    row("heard at another server, p99", "  p99", "≤ 50 ms", lambda it: it <= 50, unit=" ms")
    row("heard at another server, max", "  at the most", unit=" ms")
    row("heard at another server since it was sent, p50", "  since the save was sent, p50", unit=" ms")
    row("heard at another server since it was sent, p99", "  since the save was sent, p99", unit=" ms")
    row("an owner alone, p50", "an owner saves 20 records, p50", unit=" ms")
    row("an owner beside a flood, p50", "  beside another who saves as fast as it goes, p50", unit=" ms")
    row("an owner beside a flood ÷ alone, p50", "  ÷ alone", "≤ 2", lambda it: it <= 2)
    row("an owner alone, p99", "  alone, p99", unit=" ms")
    row("an owner beside a flood, p99", "  beside the other, p99", unit=" ms")
    row("an owner beside a flood ÷ alone, p99", "  ÷ alone, p99", "≤ 2", lambda it: it <= 2)
    row("the flood, records/s", "  what the other saves", unit="/s")
    for count in WRITERS:
        goal = ("≥ 12,000 records/s", lambda it: it >= 12_000) if count == WRITERS[-1] else ()
        row(f"{count} owners write, records/s", f"{count} {'owners write' if count > 1 else 'owner writes'}, each one request at a time", *goal, unit="/s")
        row(f"{count} owners write, p50", "  a save of 200 of theirs, p50 of the slowest owner", unit=" ms")
        row(f"{count} owners write, samples of the locks", "  samples of the database's locks")
        row(f"{count} owners write, sessions with locks at one moment", "  sessions that hold locks at one moment, at the most")
        # The worst round counts: none may see a shared lock.
        name = f"{count} owners write, locks that two owners share"
        report[name] = [max(report.get(name, [0]))]
        row(name, "  locks that two owners share, or wait for, of all rounds", "0", lambda it: it == 0)
        row(f"{count} owners write, samples in which a page's appending is waited for", "  samples in which one waits for another's page to be appended")
    row(f"{WRITERS[-1]} owners at {HALF:,} records/s, p50", f"{WRITERS[-1]} owners save {HALF:,} records/s together, p50 of the slowest owner", unit=" ms")
    row(f"{WRITERS[-1]} owners at {HALF:,} records/s, p99", "  p99 of the slowest owner", "≤ 30 ms", lambda it: it <= 30, unit=" ms")
    row("peak memory, MB", "peak memory of the server", "≤ 300 MB", lambda it: it <= 300, unit=" MB")
    return goals


def main():
    options = parse_arguments()
    signals.end_in_order()
    options.data.mkdir(parents=True, exist_ok=True)
    data = options.data.resolve()
    load, place, report = server.build(data / "bin"), data / "cluster", {}
    try:
        for round in range(options.runs):
            database = Postgres(data / "postgres")
            bench = None
            try:
                assets = data / "cluster-assets"
                shutil.rmtree(assets, ignore_errors=True)
                assets.mkdir()
                cloud = start_server.Cloud(options.tidemark, place, ["--database", database.address, "--assets", assets])
                bench = server.Bench(options, load, place, cloud)
                others = [Other(bench, cloud.add_account(name)) for name in ("ben", *(f"owner{number}" for number in range(1, max(WRITERS))))]
                measure(bench, others[0], database, options, report)
                measure_wakings(bench, options, report)
                measure_writers(others, database, options, report)
                measure_floor(database, options, report)
            finally:
                if bench:
                    bench.server.stop()
                database.stop()
            print(f"round {round + 1} of {options.runs}", file=sys.stderr, flush=True)
    except Failure as error:
        sys.exit(f"cluster.py: {error}")
    goals = print_table(report, options)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False))
    for left in (place, data / "postgres", data / "cluster-assets"):
        shutil.rmtree(left, ignore_errors=True)
    goals.end()


if __name__ == "__main__":
    main()
