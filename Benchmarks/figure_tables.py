"""The tables of the benchmarks' ratios in the documents, from the same figures as the plot. In a page a table stands between the comments
`<!-- figures: NAME -->` and `<!-- /figures -->`. Everything between them is replaced."""

import pathlib
import re

root = pathlib.Path(__file__).resolve().parent.parent

# Each table has its page, its columns, and its rows: text, benchmark, figure, whether the figure is the others' time ÷ ours, and the cells after the
# ratio. Texts may contain the numbers of records and pictures, and figures the size of a page.
IMPORT_FLOOR = ("records only ÷ the 4 KiB floor", False)
TABLES = {
    "README": ("README.md", ["what Tidemark does", "its time, where theirs is 1"], [
        ("importing {records} records, beside a plain C program that only inserts them with SQLite", "run", *IMPORT_FLOOR),
        ("the same, beside GRDB with Codable records", "run", "faster than GRDB, Codable records", True),
        ("the same, beside DuckDB's `read_json` into a table with a primary key", "run", "faster than DuckDB read_json, primary key", True),
        ("saving one record durably, beside SQLite's own commit of one row", "store", "save ÷ SQLite", False),
        ("fetching a record by name, beside GRDB with Codable records", "store", "fetch by name ÷ GRDB", False),
    ]),
    "import": ("Documentation/Guides/Performance.md", ["import", "its time, where theirs is 1", "least – most"], [
        ("{records} records, beside a plain C program that only inserts them with SQLite", "run", *IMPORT_FLOOR),
        ("the same with pages of {page} KiB in both", "run", "records only ÷ floor at the same page size ({page} KiB)", False),
        ("records and {pictures} pictures, beside the whole job in plain C", "run", "whole import ÷ floor, the C prototype", False),
        ("pictures alone, beside `cp -r` and `sync`", "run", "pictures only ÷ cp -r and sync", False),
        ("again, nothing changed, beside the first import", "run", "again, all unchanged ÷ first import, records only", False),
        ("the same with pictures, which are compared byte by byte", "run", "again, all unchanged ÷ first import", False),
        ("one record in ten changed, beside the first import", "run", "10% changed ÷ first import, records only", False),
        ("beside `sqlite-utils insert`", "run", "faster than sqlite-utils insert", True),
        ("beside GRDB with Codable records", "run", "faster than GRDB, Codable records", True),
        ("beside Python's `sqlite3` with orjson", "run", "faster than Python sqlite3 with orjson", True),
        ("beside the `sqlite3` shell's `.import`", "run", "faster than the sqlite3 shell's .import", True),
        ("beside DuckDB's `read_json` into a table with a primary key", "run", "faster than DuckDB read_json, primary key", True),
    ]),
    "API": ("Documentation/Guides/Performance.md", ["API and synchronisation", "its time, where theirs is 1", "least – most", "measured by"], [
        ("a durable save of one record, beside SQLite's own commit of one row", "store", "save ÷ SQLite", False, "`make bench-store`"),
        ("a fetch by name, beside GRDB with Codable records", "store", "fetch by name ÷ GRDB", False, "`make bench-store`"),
        ("10,000 typed records fetched, beside the same", "store", "fetch all ÷ GRDB", False, "`make bench-store`"),
        ("fetching 50,000 records from a cloud, beside SQLite that only stores them", "sync", "fetch ÷ floor", False, "`make bench-sync`"),
        ("sending 50,000 records to a cloud, beside SQLite that only stores them", "sync", "export ÷ floor", False, "`make bench-sync`"),
        ("the permissions of all records, beside plain C that only reads their names and zones", "permissions", "report ÷ floor", False,
         "`make bench-permissions`"),
    ]),
}


def number(value):
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 1.095 else f"{value:.2f}"


def rows_of(data, rows, columns):
    run = data["run"]
    sizes = {"records": f"{run['records']:,}", "pictures": f"{run['pictures']:,}", "page": run["pageSize"] // 1024}
    for text, benchmark, figure, is_speed, *more in rows:
        found = data.get(benchmark, {}).get("figures", {}).get(figure.format(**sizes))
        if found is None:
            raise SystemExit(f"figures.py: performance.json has no figure «{figure.format(**sizes)}» of {benchmark}.py, which a table shows")
        least, median, most = (1 / found[name] if is_speed else found[name] for name in (("max", "median", "min") if is_speed else ("min", "median", "max")))
        spread = [f"{number(least)} – {number(most)}, {found['rounds']} rounds"] if columns > 2 else []
        yield [text.format(**sizes), number(median), *spread, *more]


def write(data, checks, more=()):
    """Writes the tables into their pages, and returns the pages whose tables have differed. With `checks` nothing is written. `more` are further
    tables:
    the name, the page, the columns and the rows of each."""
    changed = {}
    tables = [(name, page, columns, rows_of(data, rows, len(columns))) for name, (page, columns, rows) in TABLES.items()]
    for name, page, columns, rows in [*tables, *more]:
        text = changed.get(page) or (root / page).read_text(encoding="utf-8")
        lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        table = "\n".join([f"<!-- figures: {name} -->", "", *lines, "", "<!-- /figures -->"])
        text, count = re.subn(rf"<!-- figures: {name} -->\n.*?<!-- /figures -->", lambda _: table, text, flags=re.S)
        if count != 1:
            raise SystemExit(f"figures.py: {page} has {count} tables between the comments «figures: {name}» and «/figures», and not one")
        changed[page] = text
    differing = [page for page, text in changed.items() if text != (root / page).read_text(encoding="utf-8")]
    for page in differing if not checks else []:
        (root / page).write_text(changed[page], encoding="utf-8")
    return differing
