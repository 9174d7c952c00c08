#!/usr/bin/env python3
"""Measures the console's pages over a zone with many records: the first page and later ones, a query, a record, zones, and the overview. See
README.md.

A server runs over a new cloud in a directory, which a client fills through the protocol. An operator is signed in, and opens the pages in turn.
"""

import argparse
import html
import json
import pathlib
import random
import re
import shutil
import statistics
import sys
import time

import server
from runner.asking import Visitor
from runner.goals import Goals
from runner.measuring import Failure, say
from server import signals, start_server

ZONE = "shown"
PLACE = f"c={start_server.CONTAINER}&db=private&account=anna%40example.org&zone={ZONE}"
LIST = f"/records?{PLACE}&type=Destination"
# The numbers of the list's pages that are opened.
NUMBERS = (2, 100, 1000)
# Goals: milliseconds of a page, and how many times as long a late page may take.
MOST, GROWTH = 200, 1.5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemark", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the command-line tool, release build")
    parser.add_argument("--server", required=True, type=lambda path: pathlib.Path(path).resolve(), help="the server, release build")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="where the cloud and programs go; 6 GB for the full size")
    parser.add_argument("--records", type=int, default=1_000_000, metavar="N", help="records of the zone (1,000,000)")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="rounds (7)")
    parser.add_argument("--times", type=int, default=10, metavar="N", help="how often a round opens each page (10)")
    parser.add_argument("--smoke", action="store_true", help="open everything once with few records, and print no figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything measured to FILE")
    options = parser.parse_args()
    if options.smoke:
        options.records, options.runs, options.times = 2_000, 1, 1
    return options


def fill(options, load, place):
    """Fills a cloud with the records, and returns a server over it and an operator's account."""
    bench = server.Bench(options, load, place)
    cloud = bench.cloud
    # The first records create the type, so that its indexes can be added. The indexes of all other records are then written as they are saved.
    bench.run("modify", records=server.BATCH, connections=1, zone=ZONE, answer="tags")
    for field, marks in (("recordName", ["--queryable"]), ("caption", ["--queryable", "--sortable"]), ("createdAt", ["--queryable", "--sortable"])):
        cloud.admin("schema", "index", "--container", start_server.CONTAINER, "--type", "Destination", "--field", field, *marks)
    began = time.monotonic()
    done = bench.run("modify", records=options.records - server.BATCH, first=server.BATCH, connections=4, zone=ZONE, answer="tags")
    account = {"email": "anna@example.org", "password": start_server.PASSWORDS["anna"]}
    cloud.admin("operator", "add", account["email"])
    say(f"{options.records:,} records in {time.monotonic() - began:.0f} s, {done['records/s']:,.0f} a second")
    return bench, account


def next_page(page):
    """Returns the address of the next page of a list, or `None` on the last page."""
    found = re.search(r'href="/console([^"]*[?&](?:amp;)?cont=[^"]*)">Next', page)
    return found and html.unescape(found[1])


def names(page):
    return re.findall(r"/console/record\?[^\"]*[?&;]name=([^\"&]+)", page)


def walk(visitor, start, numbers):
    """Follows a list from its beginning, and returns the addresses of some of its pages and the names of its records. No record may appear twice."""
    found, path, seen = {1: start}, start, set()
    for number in range(1, max(numbers) + 1):
        page, _ = visitor.open(path)
        records = names(page)
        if not records or seen & set(records):
            raise Failure(f"page {number} of {start} has no records, or some that came before")
        seen |= set(records)
        path = next_page(page)
        if path is None:
            break
        found[number + 1] = path
    return {number: found[number] for number in (1, *numbers) if number in found}, sorted(seen)


def addresses(visitor, options, drawn):
    """Returns the addresses of the pages that are opened, by their titles."""
    by_name, some = walk(visitor, LIST, NUMBERS)
    by_time, _ = walk(visitor, f"{LIST}&s0=createdAt&d0=descending", NUMBERS)
    caption = re.search(r"Place number \d+", visitor.open(f"/record?{PLACE}&name={some[0]}")[0])[0]
    filtered = f"{LIST}&f0=caption&o0=EQUALS&v0={caption.replace(' ', '%20')}"
    if not names(visitor.open(filtered)[0]):
        raise Failure("the filter finds nothing")
    pages = {f"by name, page {number:,}": path for number, path in by_name.items()}
    pages |= {f"newest first, page {number:,}": path for number, path in by_time.items()}
    since = f"{LIST}&f0=createdAt&o0=GREATER_THAN&v0=2024-06-01T00:00:00Z&s0=createdAt"
    pages |= {
        "a filter that an index answers": filtered, "a filter and an order that an index answers": since,
        "200 records, by name": f"{LIST}&limit=200",
        "a record": lambda: f"/record?{PLACE}&name={drawn.choice(some)}",
        "zones of an account": f"/zones?c={start_server.CONTAINER}&db=private&account=anna%40example.org",
        "overview": "", "accounts": "/accounts", "an account": "/account?id=anna%40example.org",
        "schema": f"/schema?c={start_server.CONTAINER}", "activity": "/activity?all=1",
    }
    return pages


def measure(visitor, pages, options, drawn):
    """Opens the pages in one round, and returns the median of the milliseconds of each."""
    took = {name: [] for name in pages}
    asked = [name for name in pages for _ in range(options.times)]
    drawn.shuffle(asked)
    for name in asked:
        path = pages[name]
        page, one = visitor.open(path() if callable(path) else path)
        if "<h1>" not in page:
            raise Failure(f"{name}: {page[:500]}")
        took[name].append(one)
    return {name: statistics.median(values) for name, values in took.items()}


def print_table(report, options):
    goals = Goals("console.py", options.smoke)
    goals.heading()
    for name, values in report.items():
        if "÷" in name:
            goals.line(f"  {name}", values, f"≤ {GROWTH}", lambda it: it <= GROWTH)
        else:
            goals.line(name, values, f"≤ {MOST} ms", lambda it: it <= MOST, unit=" ms")
    return goals


def main():
    options = parse_arguments()
    signals.end_in_order()
    options.data.mkdir(parents=True, exist_ok=True)
    load, place, report = server.build(options.data.resolve() / "bin"), options.data.resolve() / "console", {}
    drawn, bench = random.Random(1), None
    try:
        bench, account = fill(options, load, place)
        visitor = Visitor(bench.server.port, account)
        pages = addresses(visitor, options, drawn)
        # The first round fills caches, and does not count.
        for round in range(options.runs + 1):
            found = measure(visitor, pages, options, drawn)
            if round == 0:
                continue
            for name, value in found.items():
                report.setdefault(name, []).append(value)
                list_name, _, number = name.partition(", page ")
                if number not in ("", "1", "2"):
                    report.setdefault(f"{name} ÷ page 2", []).append(value / found[f"{list_name}, page 2"])
            say(f"round {round} of {options.runs}")
    except Failure as error:
        sys.exit(f"console.py: {error}")
    finally:
        if bench:
            bench.server.stop()
        shutil.rmtree(place, ignore_errors=True)
    goals = print_table(report, options)
    if options.json:
        options.json.write_text(json.dumps({"records": options.records} | report, indent=1, sort_keys=True, ensure_ascii=False))
    goals.end()


if __name__ == "__main__":
    main()
