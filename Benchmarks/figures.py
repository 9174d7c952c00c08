#!/usr/bin/env python3
"""Draws the plot of the benchmarks' ratios, Documentation/Pictures/performance-{light,dark}.svg, from performance.json beside it. Writes the tables
of these ratios in README.md and in the guide to performance, and the pictures and tables of Documentation/Scale.md (scale.py).

With --collect, it first fills performance.json from the files that the benchmarks have written with --json."""

import argparse
import json
import math
import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Documentation" / "Pictures"))
import drawing
import figure_tables
import scale

DATA = drawing.folder / "performance.json"

# The rows of the plot: label, benchmark, figure. In `peer ÷` rows the figure is how many times as fast Tidemark is. In the others it is Tidemark's
# time divided by the time of the other. Labels may contain the numbers of records and pictures.
PEERS = "peers"
FLOOR = "floor"
GROUPS = [
    (PEERS, "Beside what you would use instead", [
        ("Import, sqlite-utils insert", "run", "faster than sqlite-utils insert", True),
        ("Import, GRDB with Codable records", "run", "faster than GRDB, Codable records", True),
        ("Import, DuckDB read_json", "run", "faster than DuckDB read_json, primary key", True),
        ("Import, Python’s sqlite3 with orjson", "run", "faster than Python sqlite3 with orjson", True),
        ("Import, the sqlite3 shell’s .import", "run", "faster than the sqlite3 shell's .import", True),
        ("Again, nothing changed, DuckDB upsert", "run", "faster than DuckDB upsert, all unchanged", True),
        ("Pictures, cp -r and sync", "run", "pictures only ÷ cp -r and sync", False),
        ("Fetch by name, GRDB", "store", "fetch by name ÷ GRDB", False),
        ("Fetch 10,000 typed records, GRDB", "store", "fetch all ÷ GRDB", False),
    ]),
    (FLOOR, "Beside the bare work in C and SQLite", [
        ("Import, C with pages of 4 KiB", "run", "records only ÷ the 4 KiB floor", False),
        ("Import, C with pages of {page} KiB", "run", "records only ÷ floor at the same page size ({page} KiB)", False),
        ("Import with pictures, C", "run", "whole import ÷ floor, the C prototype", False),
        ("Durable save of one record, SQLite", "store", "save ÷ SQLite", False),
        ("Sync, fetching", "sync", "fetch ÷ floor", False),
        ("Sync, sending", "sync", "export ÷ floor", False),
        ("Permissions of all records", "permissions", "report ÷ floor", False),
    ]),
]
BENCHMARKS = ("run", "store", "sync", "permissions", "server", "cluster", "growth", "placement", "bucket")
# Values with which a report describes itself.
ABOUT = ("few", "owners", "records", "large", "fieldBytes")
MARKS = {PEERS: ("blue", "circle"), FLOOR: ("orange", "diamond")}


def series(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "rounds": len(values)}


def collect(benchmark, report):
    """Returns the figures of a benchmark's JSON that the plot may show."""
    if benchmark == "run":
        figures = {row["figure"]: series(row["values"]) for row in report["figures"] if row["values"]}
        about = {name: report[name] for name in ("machine", "peers", "pageSize", "records", "pictures")}
        return {**about, "figures": figures}
    if benchmark == "permissions":
        return {"figures": {"report ÷ floor": series([it / floor for it, floor in zip(report["report, s"], report["floor, s"])])}}
    if benchmark == "bucket":
        return report
    if benchmark == "placement":
        both = {name: {str(count): series(values) for count, values in report[name].items()} for name in ("shards", "tables")}
        return both | {"largest": series(report["largest"])} | {name: report[name] for name in ("accounts", "exponent", "most", "mean", "known")}
    numbers = lambda it: isinstance(it, list) and it and all(isinstance(value, (int, float)) for value in it)
    found = {"figures": {name: series(values) for name, values in report.items() if numbers(values)}}
    return found | {name: value for name, value in report.items() if name in ABOUT and not isinstance(value, list)}


def rows_of(data):
    """Yields the rows of each group: the label, the least, median and greatest speed (1 is as fast as the other), and the number of rounds."""
    page = data["run"]["pageSize"] // 1024
    for kind, title, rows in GROUPS:
        found = []
        for label, benchmark, figure, is_speed in rows:
            values = data.get(benchmark, {}).get("figures", {}).get(figure.format(page=page))
            if values is None:
                print(f"figures.py: performance.json has no figure «{figure.format(page=page)}» of {benchmark}.py: its row is left out", file=sys.stderr)
                continue
            ends = sorted(values[name] if is_speed else 1 / values[name] for name in ("min", "max"))
            middle = values["median"] if is_speed else 1 / values["median"]
            found.append((label.format(page=page), ends[0], middle, ends[1], values["rounds"]))
        found.sort(key=lambda row: -row[2])
        yield kind, title, found


def times(value, like=None):
    return f"{value:.1f}" if (like or value) >= 1.995 else f"{value:.2f}"


def words(speed):
    """Returns a ratio in words: ‘3.5× as fast’, ‘1.35× as long’."""
    return f"{times(speed)}× as fast" if speed >= 1 else f"{times(1 / speed)}× as long"


def spread(low, middle, high):
    """Returns the least and the greatest ratio, in the same direction as the median."""
    ends = (low, high) if middle >= 1 else (1 / high, 1 / low)
    return " – ".join(times(end, like=max(middle, 1 / middle)) for end in ends)


LEFT, RIGHT, ROW, WIDTH = 338, 614, 27, 840
LEAST, MOST = 0.25, 16


def place(speed):
    if not LEAST <= speed <= MOST:
        sys.exit(f"figures.py: {speed:.2f} is beyond the axis, {LEAST} to {MOST}: widen it")
    return LEFT + (RIGHT - LEFT) * math.log(speed / LEAST) / math.log(MOST / LEAST)


def draw(data, theme):
    groups = list(rows_of(data))
    run = data["run"]
    top = 80
    bottom = top + sum(34 + ROW * len(rows) for _, _, rows in groups)
    height = bottom + 88
    spoken = "; ".join(f"{label}: {words(middle)}" for _, _, rows in groups for label, _, middle, _, _ in rows)
    it = drawing.Picture(theme, WIDTH, height, "How fast Tidemark is beside other ways to do the same",
                         f"A plot of ratios with a logarithmic axis. Tidemark, compared with each: {spoken}.")
    it.text(24, 36, "How fast Tidemark is beside other ways to do the same", size=19, bold=True)
    # The two halves of the axis.
    middle = place(1)
    it.text(middle - 12, 72, "← Tidemark takes longer", size=12.5, colour="muted", anchor="end")
    it.text(middle + 12, 72, "Tidemark is faster →", size=12.5, colour="muted")
    for power in range(-2, 5):
        value = 2.0 ** power
        x = place(value)
        # The vertical lines leave out the titles of the groups.
        begin = top
        for _, _, rows in groups:
            end = begin + 34 + ROW * len(rows)
            it.line(x, begin + 32, x, end, colour="muted" if value == 1 else "grid", thickness=1.5 if value == 1 else 1)
            begin = end
        name = f"{value:g}×" if value > 1 else "equal" if value == 1 else f"{1 / value:g}×"
        it.text(x, bottom + 18, name, size=12.5, colour="muted", anchor="middle")
    it.text(WIDTH - 22, 72, "least – most", size=12.5, colour="muted", anchor="end")
    y = top
    for kind, title, rows in groups:
        colour, shape = MARKS[kind]
        y += 22
        mark(it, shape, 31, y - 5, colour)
        it.text(44, y, title, size=14.5, bold=True, colour=colour)
        y += 12
        for label, low, centre, high, rounds in rows:
            line = y + ROW / 2
            it.text(44, line + 5, label, size=14)
            if rounds > 1:
                it.line(place(low), line, place(high), line, colour=colour, thickness=2)
                for end in (low, high):
                    it.line(place(end), line - 5, place(end), line + 5, colour=colour, thickness=2)
            mark(it, shape, place(centre), line, colour)
            it.text(632, line + 5, words(centre), size=13.5, bold=True)
            it.text(WIDTH - 22, line + 5, spread(low, centre, high) if rounds > 1 else "1 round", size=12, colour="muted", anchor="end")
            y += ROW
    machine = run["machine"]
    rounds = sorted({row[4] for _, _, rows in groups for row in rows})
    said = f"{rounds[0]} to {rounds[-1]} rounds" if len(rounds) > 1 else f"{rounds[0]} rounds"
    it.text(24, height - 34, f"Marks are medians of {said}, lines reach from the least to the most; the axis is logarithmic. Each ratio is of one run.",
            size=12.5, colour="muted")
    it.text(24, height - 15, f"Imports of {run['records']:,} records and {run['pictures']:,} pictures; {machine['cores']} × {machine['processor']}, {machine['date'][:10]}; "
            f"{run['peers']}.", size=12.5, colour="muted")
    return it.svg()


def mark(it, shape, x, y, colour):
    if shape == "circle":
        it.add("circle", cx=float(x), cy=float(y), r=4.5, fill=it.colour(colour), stroke=it.colour("page"), stroke_width=1)
    else:
        it.add("path", d=f"M{x:.1f} {y - 6:.1f} L{x + 6:.1f} {y:.1f} L{x:.1f} {y + 6:.1f} L{x - 6:.1f} {y:.1f} Z", fill=it.colour(colour),
               stroke=it.colour("page"), stroke_width=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if the plot or a table differs from what is there")
    parser.add_argument("--collect", action="append", default=[], metavar="NAME=FILE",
                        help=f"take the figures of {', '.join(BENCHMARKS[:-1])} or {BENCHMARKS[-1]} from what it wrote with --json")
    options = parser.parse_args()
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for item in options.collect:
        name, _, file = item.partition("=")
        if name not in BENCHMARKS or not file:
            parser.error(f"--collect {item}: NAME=FILE, with one of {', '.join(BENCHMARKS)}")
        data[name] = collect(name, json.loads(pathlib.Path(file).read_text(encoding="utf-8")))
    if "run" not in data:
        sys.exit("figures.py: there are no figures yet; measure with 'run.py --json FILE', then give me '--collect run=FILE'")
    if options.collect and not options.check:
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    differing = drawing.write("performance", lambda theme: draw(data, theme), options.check)
    for name, picture in scale.pictures(data).items():
        differing += drawing.write(name, picture, options.check)
    tables = figure_tables.write(data, options.check, scale.tables(data))
    drawing.end("figures.py", differing + (tables if options.check else []), options.check)


if __name__ == "__main__":
    main()
