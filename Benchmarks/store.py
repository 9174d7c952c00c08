#!/usr/bin/env python3
"""Measures the store's API beside SQLite and GRDB, and how soon other processes hear of a commit. See README.md."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import threading

from runner.goals import Goals

FIGURES = [
    ("durable save of one record ÷ SQLite's own one-row FULL commit", "save ÷ SQLite", 1.5),
    ("fetch by name ÷ the same through GRDB", "fetch by name ÷ GRDB", 1.2),
    ("10,000 typed records fetched ÷ GRDB Codable fetch", "fetch all ÷ GRDB", 1.0),
]

OBSERVED = [
    ("1,000 saves beside an observed list of all of 10,000 ÷ alone", "beside all ÷ alone", 1.5),
    ("fetches of that list", "fetches of all", 100),
    ("1,000 saves beside an observed top ten of 10,000 ÷ alone", "beside top ten ÷ alone", 1.1),
    ("fetches of the top ten", "fetches of top ten", None),
]

# Each: the number of records, the label, the dividend, the divisor, and the goal.
BULK_FIGURES = [
    (10_000, "10,000 typed records saved ÷ GRDB Codable insert, both durable", "save", "GRDB insert", 1.5),
    (10_000, "the same again, unchanged ÷ the first save", "save unchanged", "save", 0.5),
    (10_000, "10,000 inserts by a context ÷ by the container", "context insert", "save", 2.0),
    (10_000, "10,000 updates by a context ÷ by the container", "context update", "save changed", 2.0),
    (100_000, "100,000 inserts by a context ÷ by the container", "context insert", "save", 2.0),
    (100_000, "100,000 updates by a context ÷ by the container", "context update", "save changed", 2.0),
]

# Times that are compared as the number of records grows, beside GRDB's insert and fetches.
GROWTH = [
    ("GRDB insert", True), ("save", True), ("save unchanged", True), ("save changed", True), ("context insert", True),
    ("context update", True), ("GRDB fetch of 10,000", False), ("fetch of 10,000", False), ("GRDB top ten", False), ("top ten", False),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where programs and databases go")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="rounds (5)")
    parser.add_argument("--commits", type=int, default=10_000, metavar="N", help="commits of which another process hears (10,000)")
    parser.add_argument("--store", metavar="DIR", help="a large container with a type Destination, to be opened for reading")
    parser.add_argument("--program", type=pathlib.Path, metavar="FILE", help="the program store-bench, if it is built already")
    parser.add_argument("--growth", type=int, default=1, metavar="N", help="rounds with 1,000,000 records (1); 0 leaves them out")
    parser.add_argument("--smoke", action="store_true", help="measure everything once with little, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    options.records, options.saves = 10_000, 1_000
    if options.smoke:
        options.runs, options.commits = 1, 20
        options.records, options.saves = 200, 20
    return options


def build(data):
    scratch = data / "store-bench"
    folder = pathlib.Path(__file__).parent
    subprocess.run(["swift", "build", "-c", "release", "--product", "store-bench", "--scratch-path", scratch],
                   cwd=folder, check=True, stdout=sys.stderr)
    return scratch / "release" / "store-bench"


def measure_notice(program, data, commits):
    """Returns the milliseconds from a commit's return until another process hears of it, how many were missed, and how many the writer heard itself."""
    container = data / "notice.tidemark"
    shutil.rmtree(container, ignore_errors=True)
    # Makes the container.
    subprocess.run([program, "notify", container, "1"], check=True, capture_output=True)
    listener = subprocess.Popen([program, "listen", container], stdout=subprocess.PIPE, text=True)
    listener.stdout.readline()
    heard = {}

    def drain():
        while len(heard) < commits:
            line = listener.stdout.readline()
            if not line:
                return
            transaction, time, _ = line.split()
            heard[int(transaction)] = int(time)

    draining = threading.Thread(target=drain, daemon=True)
    draining.start()
    told = subprocess.run([program, "notify", container, str(commits)], check=True, capture_output=True, text=True).stdout
    committed, self_heard = {}, None
    for line in told.splitlines():
        if line.startswith("heard of its own:"):
            self_heard = int(line.split(":")[1])
        else:
            transaction, time = line.split()
            committed[int(transaction)] = int(time)
    # The thread keeps reading, because a full pipe would stop the listener.
    draining.join(timeout=30)
    listener.terminate()
    listener.wait()
    shutil.rmtree(container, ignore_errors=True)
    # The time is 0 if the listener has read the history before the writer has read its clock.
    times = [max(0, heard[it] - committed[it]) / 1e6 for it in committed if it in heard]
    return times, len(committed) - len(times), self_heard


def measure_bulk(program, data, count):
    """Returns the milliseconds of saves of many records, and of a small save meanwhile."""
    folder = data / "bulk"
    shutil.rmtree(folder, ignore_errors=True)
    times = json.loads(subprocess.run([program, "bulk", folder, str(count)], check=True, capture_output=True, text=True).stdout)
    shutil.rmtree(folder)
    return times


def measure_growth(program, options, bulk):
    """Measures 1,000,000 records, too, and prints how the times grow: milliseconds for each 10,000 records, or for the whole fetch."""
    large = 200 if options.smoke else 1_000_000
    if options.growth:
        bulk[str(large)] = [measure_bulk(program, options.data, large) for _ in range(options.growth)]
    if options.smoke:
        return
    counts = sorted(map(int, bulk))
    print(f"\n{'ms, medians':<66}" + "".join(f"{count:>12,}" for count in counts))
    for key, each in GROWTH:
        cells = []
        for count in counts:
            middle = statistics.median(it[key] for it in bulk[str(count)])
            cells.append(f"{middle * 10_000 / count if each else middle:>12,.1f}")
        print(f"{key + (', for each 10,000' if each else ''):<66}" + "".join(cells))
    print()


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    options = parse_arguments()
    options.data.mkdir(parents=True, exist_ok=True)
    program = options.program.resolve() if options.program else build(options.data.resolve())
    goals = Goals("store.py", options.smoke)
    report = json.loads(subprocess.run(
        [program, "api", options.data / "api", str(options.runs)], check=True, capture_output=True, text=True).stdout)
    goals.heading()
    for name, key, goal in FIGURES:
        goals.line(name, report[key], f"≤ {goal}", lambda it, goal=goal: it <= goal)
    observed = json.loads(subprocess.run(
        [program, "observe", options.data / "observe", str(options.runs), str(options.records), str(options.saves)],
        check=True, capture_output=True, text=True).stdout)
    for name, key, goal in OBSERVED:
        if goal is None:
            goals.line(name, observed[key])
        else:
            goals.line(name, observed[key], f"≤ {goal}", lambda it, goal=goal: it <= goal)
    report["observed"] = observed
    counts = [50, 100] if options.smoke else [10_000, 100_000]
    report["bulk, ms"] = {}
    for count, full in zip(counts, [10_000, 100_000]):
        rounds = [measure_bulk(program, options.data, count) for _ in range(options.runs)]
        report["bulk, ms"][str(count)] = rounds
        for of, name, key, peer, goal in BULK_FIGURES:
            if of == full:
                goals.line(name, [it[key] / it[peer] for it in rounds], f"≤ {goal}", lambda it, goal=goal: it <= goal)
        goals.line(f"longest wait of a small save beside {full:,} saved in batches", [it["longest wait"] for it in rounds],
                   "≤ 50 ms", lambda it: it <= 50, " ms")
    measure_growth(program, options, report["bulk, ms"])
    report["references"] = {}
    for count in [2_000] if options.smoke else [100_000, 1_000_000]:
        found = json.loads(subprocess.run(
            [program, "references", options.data / "references", str(options.runs), str(count)],
            check=True, capture_output=True, text=True).stdout)
        report["references"][str(count)] = found
        goal = 10 if count <= 100_000 else None
        name = f"a badge on each of 20 rows, of {count:,} records"
        if goal:
            goals.line(name, found["counts, ms"], f"≤ {goal} ms", lambda it, goal=goal: it <= goal, " ms")
        else:
            goals.line(name, found["counts, ms"], unit=" ms")
        goals.line("the same ÷ GRDB with an index", found["counts ÷ GRDB"])
    times, lost, self_heard = measure_notice(program, options.data, options.commits)
    report["notice, ms"] = {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "lost": lost, "self-heard": self_heard}
    goals.line("change notification between processes, p50", [quantile(times, 0.5)], "≤ 2 ms", lambda it: it <= 2, " ms")
    goals.line("change notification between processes, p99", [quantile(times, 0.99)], "≤ 20 ms", lambda it: it <= 20, " ms")
    goals.line(f"of {options.commits:,} commits lost", [lost], "0", lambda it: it == 0)
    goals.line("heard by the process that made them", [self_heard], "0", lambda it: it == 0)
    if options.store:
        opened = subprocess.run([program, "open", options.store, "101"], check=True, capture_output=True, text=True).stdout
        opened = [float(line) for line in opened.split()]
        size = os.path.getsize(os.path.join(options.store, "private.sqlite")) / 1e9
        report["open, ms"] = opened
        goals.line(f"opening a store of {size:.1f} GB for reading, with a first row", opened, "≤ 5 ms", lambda it: it <= 5, " ms")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, sort_keys=True, ensure_ascii=False))
    goals.end()


if __name__ == "__main__":
    main()
