#!/usr/bin/env python3
"""Measures the permission report beside a plain C program that reads the same rows, and while shares change. See README.md."""

import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

from runner import preparing
from runner.goals import Goals

ZONES = 100
PARTICIPANTS = 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidemark", required=True, type=pathlib.Path, help="the command-line tool, release build")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where data, programs and databases go")
    parser.add_argument("--records", type=int, default=1_000_000, metavar="N", help="records, half of them of others (1,000,000)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="rounds (5)")
    parser.add_argument("--seconds", type=float, default=20, metavar="N", help="how long reports are made while shares change (20)")
    parser.add_argument("--program", type=pathlib.Path, metavar="FILE", help="the program permissions-bench, if it is built already")
    parser.add_argument("--smoke", action="store_true", help="measure everything once with little, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    if options.smoke:
        options.records, options.runs, options.seconds = 2_000, 1, 1
    return options


def build(data):
    scratch = data / "store-bench"
    folder = pathlib.Path(__file__).resolve().parent
    subprocess.run(["swift", "build", "-c", "release", "--product", "permissions-bench", "--scratch-path", scratch],
                   cwd=folder, check=True, stdout=sys.stderr)
    return scratch / "release" / "permissions-bench"


def timed(command):
    """Runs a command; returns what it prints, its seconds and its peak memory in MB."""
    start = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
    output = 0
    first = b""
    while block := process.stdout.read(1 << 20):
        first = first or block
        output += len(block)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} ends with {process.returncode}")
    return {"words": first.split(b"\n", 1)[0].split(), "bytes": output, "seconds": time.monotonic() - start,
            "MB": usage.ru_maxrss / 1024}


class Stores:
    """A container with records in zones, half of them in zones of other owners, as after a synchronisation."""

    def __init__(self, options, program, manifest):
        self.tidemark, self.records = options.tidemark.resolve(), options.records
        place = options.data.resolve() / "permissions"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        self.place, self.container = place, place / "A.tidemark"
        one = lambda permission: subprocess.run([program, "participant", permission], check=True, capture_output=True, text=True).stdout.strip()
        self.users = [one("readWrite"), one("readOnly")]
        other = place / "B.tidemark"
        for container in (self.container, other):
            command = [self.tidemark, "import", manifest, "--into", container, "--type", "Destination", "--id", "id"]
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        (other / "private.sqlite").rename(self.container / "shared.sqlite")
        shutil.rmtree(other)
        with self.open("private") as database:
            self.make_zones(database, owner=None)
            # One in five of the own records is in a shared zone.
            database.execute(f"UPDATE Destination SET _zone = CASE WHEN _id % 5 = 0 THEN 2 + _id % {ZONES} ELSE 1 END")
        with self.open("shared") as database:
            self.make_zones(database, owner="_owner")
            database.execute(f"UPDATE Destination SET _zone = 2 + _id % {ZONES}")
        for scope in ("private", "shared"):
            database = self.open(scope)
            database.execute(f"UPDATE Destination SET _tag = 'tag', _base = _version, _pending = NULL WHERE _id % 10 <> 0")
            database.commit()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.close()
        os.sync()

    def open(self, scope):
        database = sqlite3.connect(self.container / f"{scope}.sqlite")
        # Readers need the index of the log.
        database.execute("PRAGMA wal_autocheckpoint = 0")
        return database

    def make_zones(self, database, owner):
        others = [json.loads(self.users[0]) for _ in range(PARTICIPANTS)]
        others[0]["role"] = 1
        for number, other in enumerate(others):
            other["id"] = other["identity"]["userRecordName"] = f"_person{number}"
        for number in range(ZONES):
            zone = number + 2
            name = f"{owner}{number % 20}" if owner else ""
            database.execute("INSERT INTO tide_zones (id, owner, name) VALUES (?, ?, ?)", (zone, name, f"Zone {number}"))
            user = json.dumps(others[0]) if owner is None else self.users[number % 2]
            # One zone in ten has shared hierarchies instead of a share of the zone, three each.
            roots = ["a", "b", "c"] if number % 10 == 0 else [None]
            for index, root in enumerate(roots):
                database.execute("INSERT INTO tide_shares VALUES (?, ?, ?, 'A journey', 1, 'tag', 3, 3, 2, ?, ?)",
                                 (zone, f"share {index}", root, user, json.dumps(others)))

    def change(self, database, state):
        """Replaces all shares in one transaction."""
        with database:
            database.execute("DELETE FROM tide_shares")
            database.executemany("INSERT INTO tide_shares VALUES (?, ?, NULL, '', 1, 'tag', 3, 3, 2, ?, '[]')",
                                 [(zone, str(state), self.users[state % 2]) for zone in range(2, ZONES + 2)])


def measure_exact(stores, program, seconds):
    """Makes reports while all shares keep changing. Returns the seconds of each, how many were not of one moment, and the numbers of states made and seen."""
    database, state = stores.open("shared"), 0
    stores.change(database, state)
    reporting = subprocess.Popen([program, "exact", stores.container], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    reporting.stdout.readline()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state += 1
        stores.change(database, state)
        # Without a pause the writes would keep the disk busy, which would then be measured.
        time.sleep(0.005)
    output, _ = reporting.communicate()
    database.close()
    if reporting.returncode != 0:
        sys.exit(f"the reports end with {reporting.returncode}")
    lines = [line.split() for line in output.splitlines()]
    return [float(it[0]) for it in lines], sum(it[1] != "true" for it in lines), state, len({it[2] for it in lines})


def main():
    options = parse_arguments()
    options.data.mkdir(parents=True, exist_ok=True)
    binaries = options.data.resolve() / "bin"
    preparing.build(binaries, ["floor", "generate"])
    program = options.program.resolve() if options.program else build(options.data.resolve())
    half = options.records // 2
    folder = options.data.resolve() / f"{half // 1000}k-bare"
    preparing.make_data(binaries, folder, half, 0, bare=True)
    stores = Stores(options, program, folder / "records-nopictures.jsonl")
    report = {name: [] for name in ("decision, ns", "look-up, µs", "floor, s", "report, s", "report, MB", "csv, s", "csv, MB", "json, s")}
    decisions = subprocess.run([program, "decide", str(options.runs)], check=True, capture_output=True, text=True).stdout
    report["decision, ns"] = list(map(float, decisions.split()))
    for _ in range(options.runs):
        floors = [timed([binaries / "floor", "places", stores.container / f"{scope}.sqlite"]) for scope in ("private", "shared")]
        report["floor, s"].append(sum(float(it["words"][1]) for it in floors))
        streamed = timed([program, "report", stores.container])
        if int(streamed["words"][1]) != 2 * half:
            sys.exit(f"the report has {streamed['words'][1].decode()} records, not {2 * half}")
        report["report, s"].append(float(streamed["words"][0]))
        report["report, MB"].append(streamed["MB"])
        for form in ("csv", "json"):
            printed = timed([stores.tidemark, "permissions", stores.container, "--as", form])
            report[f"{form}, s"].append(printed["seconds"])
            if form == "csv":
                report["csv, MB"].append(printed["MB"])
        looked = timed([program, "look-up", stores.container, "10000"])
        report["look-up, µs"].append(float(looked["words"][0]))
    goals = Goals("permissions.py", options.smoke)
    goals.heading()
    name = f"{2 * half:,} records"
    goals.line("one decision", report["decision, ns"], "≤ 200 ns", lambda it: it <= 200, " ns")
    goals.line("the report of one record", report["look-up, µs"], unit=" µs")
    goals.line(f"the report of {name}, streamed", report["report, s"], "≤ 2 s", lambda it: it <= 2, " s")
    goals.line("peak memory", report["report, MB"], "≤ 64 MB", lambda it: it <= 64, " MB")
    goals.line("plain C that reads keys and zones of the same rows", report["floor, s"], unit=" s")
    goals.line("the report ÷ plain C", [it / floor for it, floor in zip(report["report, s"], report["floor, s"])])
    goals.line("`tidemark permissions --as csv`, the whole process", report["csv, s"], unit=" s")
    goals.line("its peak memory", report["csv, MB"], "≤ 64 MB", lambda it: it <= 64, " MB")
    goals.line("`tidemark permissions --as json`", report["json, s"], unit=" s")
    times, wrong, states, seen = measure_exact(stores, program, options.seconds)
    report["while shares change"] = {"seconds": times, "not of one moment": wrong, "states written": states, "states seen": seen}
    goals.line(f"a report while all of the shares change ({states:,} times)", times, unit=" s")
    goals.line(f"of {len(times):,} reports, which were of {seen:,} states, not of one moment", [wrong], "0", lambda it: it == 0)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False))
    shutil.rmtree(stores.place)
    goals.end()


if __name__ == "__main__":
    main()
