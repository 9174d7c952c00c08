"""The figures, their goals, and the tables."""

import statistics

from .contestants import PAGE_SIZE_SMALL
from .goals import judge


def figures(page_size, records, large):
    """The rows of the table: title, goal in words, the value of one round, whether a value meets the goal, and its form.

    Where there is no goal, the words are empty and so is the judgement.
    """
    def ratio(over, under):
        return lambda run: run[over]["seconds"] / run[under]["seconds"]

    def at_most(limit, over, under):
        return f"≤ {limit:g}", ratio(over, under), lambda value: value <= limit, "{:.2f}"

    def faster(times, peer, ours):
        return f"≥ {times:g} ×", ratio(peer, ours), lambda value: value >= times, "{:.1f} ×"

    def memory(name):
        return "≤ 128 MB", lambda run: run[name]["peak"] / 1e6, lambda value: value <= 128, "{:.0f} MB"

    def beside_floor(path):
        return "", ratio(f"core-{path}", f"floor-{path}"), None, "{:.2f}"

    yield ("core ÷ floor: hash the pictures", *beside_floor("hash"))
    yield ("core ÷ floor: take in the pictures", *beside_floor("intake"))
    yield ("core ÷ floor: insert", *beside_floor("insert"))
    yield ("core ÷ floor: upsert, unchanged", *beside_floor("unchanged"))
    yield ("core ÷ floor: upsert, one field changed", *beside_floor("update"))
    yield ("whole import ÷ floor, the C prototype", *at_most(1.15, "tidemark-whole", "floor-whole"))
    small = "floor-insert" if page_size == PAGE_SIZE_SMALL else "floor-insert-4k"
    size = f"{page_size // 1024} KiB"
    yield (f"records only ÷ floor at the same page size ({size})", *at_most(1.25, "tidemark-records", "floor-insert"))
    yield ("records only ÷ the 4 KiB floor", *at_most(1.0, "tidemark-records", small))
    yield ("records and pictures ÷ records only", *at_most(1.35, "tidemark-whole", "tidemark-records"))
    yield ("again, all unchanged ÷ first import", *at_most(0.4, "tidemark-whole-again", "tidemark-whole"))
    yield ("again, all unchanged ÷ first import, records only", *at_most(0.4, "tidemark-records-again", "tidemark-records"))
    yield ("10% changed ÷ first import", *at_most(0.6, "tidemark-whole-changed", "tidemark-whole"))
    yield ("10% changed ÷ first import, records only", *at_most(0.6, "tidemark-records-changed", "tidemark-records"))
    yield ("faster than sqlite-utils insert", *faster(8, "sqlite-utils", "tidemark-records"))
    yield ("faster than GRDB, Codable records", *faster(4, "grdb", "tidemark-records"))
    yield ("faster than DuckDB read_json, primary key", "> 1 ×", ratio("duckdb", "tidemark-records"), lambda value: value > 1,
           "{:.1f} ×")
    yield ("faster than DuckDB upsert, all unchanged", *faster(8, "duckdb-upsert", "tidemark-records-again"))
    yield ("faster than DuckDB upsert, types detected", *faster(8, "duckdb-upsert-detected", "tidemark-records-again"))
    yield ("faster than Python sqlite3 with orjson", *faster(2.3, "python-orjson", "tidemark-records"))
    yield ("faster than the sqlite3 shell's .import", *faster(2, "sqlite3-import", "tidemark-records"))
    yield ("pictures only ÷ cp -r and sync", *at_most(1.2, "tidemark-pictures", "copy-pictures"))
    yield (f"peak memory, {records:,} records", *memory("tidemark-records"))
    yield (f"peak memory, {records:,} records and pictures", *memory("tidemark-whole"))
    if large:
        def growth(quantity):
            return lambda run: run["tidemark-large"][quantity] / run["tidemark-beside-large"][quantity]

        scale = large / records
        yield (f"peak memory, {large:,} records", *memory("tidemark-large"))
        yield (f"peak memory at {large:,} ÷ at {records:,}", "≤ 1.1", growth("peak"), lambda value: value <= 1.1, "{:.2f}")
        yield (f"time per record at {large:,} ÷ at {records:,}", "≤ 1.6", lambda run: growth("seconds")(run) / scale,
               lambda value: value <= 1.6, "{:.2f}")


def evaluate(rows, rounds, skipped):
    """Takes each figure within each round in which all it needs took part."""
    for title, goal, value_of, meets, form in rows:
        values, missing = [], set()
        for run in rounds:
            try:
                values.append(value_of(run))
            except KeyError as error:
                missing.add(error.args[0])
        row = {"figure": title, "goal": goal, "values": values}
        if values:
            middle = statistics.median(values)
            row.update(median=middle, met=judge(values, meets), shown=form.format(middle))
            spread = f"{form.format(min(values))} – {form.format(max(values))}"
            row["spread"] = spread if len(values) > 1 else "1 round"
        else:
            row["reason"] = ", ".join(sorted(skipped.get(name, f"{name} did not run") for name in missing))
        yield row


def print_table(heading, rows):
    widths = [max(len(row[column]) for row in [heading, *rows]) for column in range(len(heading))]
    for index, row in enumerate([heading, *rows]):
        cells = [cell.rjust(width) for cell, width in zip(row, widths)]
        print("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())
        if index == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def print_figures(evaluated):
    rows = []
    for row in evaluated:
        if "median" in row:
            rows.append([row["figure"], row["shown"], row["spread"], row["goal"], row["met"]])
        else:
            rows.append([row["figure"], "–", "", row["goal"], f"skipped: {row['reason']}"])
    print_table(["figure", "median", "min – max", "goal", "met"], rows)


def print_absolutes(steps, rounds, counts):
    rows = []
    for name, title in steps.items():
        runs = [run[name] for run in rounds if name in run]
        if not runs:
            continue
        seconds = [run["seconds"] for run in runs]
        middle = statistics.median(seconds)
        processor = statistics.median(run["processor"] for run in runs)
        peak = max(run["peak"] for run in runs) / 1e6
        rows.append([title, f"{middle:.3f}", f"{min(seconds):.3f} – {max(seconds):.3f}", f"{processor:.2f}", f"{peak:.0f}",
                     f"{counts[name] / middle:,.0f}"])
    print_table(["contestant", "seconds", "min – max", "user+sys", "peak MB", "rows/s"], rows)
