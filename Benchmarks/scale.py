"""The tables and pictures of Documentation/Scale.md: the cost of a request, the machines for a number of accounts, the limits of one database, and
the spread of accounts over shards. Everything follows from performance.json and from the assumptions below."""

import math

import drawing

PAGE = "Documentation/Scale.md"
DAY = 86_400
# What a person does on an average day, and stores. The page gives the sources.
CHECKS, SAVES, FETCHES = 20, 1, 2
SAVED = 5
STORED, RECORD_BYTES = 1_000, 1_200
UPLOADS, DOWNLOADS, ASSET_BYTES, ASSETS = 0.5, 1, 300_000, 300
# The requests for lists that the daily sweep sends to the bucket for each account: contents, pieces of uploads, and multipart uploads.
SWEPT = 3
# The busiest hour divided by the average one, the share of its processors that a machine may use, and how many devices
# of an account wait for changes at once, on average.
PEAK, BUSY, WAITING = 3, 0.5, 0.02
# A server's cores, waiting devices and connections to the database. A database's cores, its disk (limited by backups and restores), its log in
# bytes a second, and its connections.
SERVER_CORES, SERVER_WAITING, POOL = 16, 10_000, 17
CORES, DISK, LOG, CONNECTIONS = 64, 4e12, 100e6, 1_000
SIZES = (1_000_000, 10_000_000, 100_000_000)
NAMES = {"modify": "a record, saved in batches of 200", "few": f"a save of {SAVED} records", "news": f"{SAVED} new records, fetched", "nothing": "asking what is new, and nothing is",
         "lookup": "a look-up of one record"}


# Each goal: its words, the benchmark and its figure, the value, its unit and digits, and whether the figure must be at most the value, not at least.
GOALS = (
    ("saves in batches of 200, of one owner", "cluster", "modify, records/s", 12_000, " records/s", 0, False),
    ("the same, of eight owners at once", "cluster", "8 owners write, records/s", 12_000, " records/s", 0, False),
    ("the first, beside PostgreSQL alone, whose upserts are as large", "cluster", "modify ÷ floor", 0.6, "", 2, False),
    ("look-ups of one record", "cluster", "lookup, requests/s", 4_000, "/s", 0, False),
    ("p99 of look-ups at half load, 2,000/s", "cluster", "lookup at 2,000/s, p99", 30, " ms", 1, True),
    ("p99 of saves at half load, 6,000 records/s", "cluster", "modify at 6,000 records/s, p99", 30, " ms", 1, True),
    ("the same, of eight owners together, the slowest of them", "cluster", "8 owners at 6,000 records/s, p99", 30, " ms", 1, True),
    ("p99 from the answer to a save through one server until who waits at another hears of it", "cluster", "heard at another server, p99", 50, " ms", 1, True),
    ("an owner's saves beside a flood of another, median ÷ alone", "cluster", "an owner beside a flood ÷ alone, p50", 2, "", 2, True),
    ("the same, p99 ÷ alone", "cluster", "an owner beside a flood ÷ alone, p99", 2, "", 2, True),
    ("locks that two of eight owners share", "cluster", "8 owners write, locks that two owners share", 0, "", 0, True),
    ("a look-up, 10,000 owners ÷ 100", "growth", "look-up, many ÷ few", 1.5, "", 2, True),
    ("a save of 200, 10,000 owners ÷ 100", "growth", "save, many ÷ few", 1.5, "", 2, True),
    ("a look-up, ten million records ÷ 1,000", "growth", "look-up, large ÷ few", 1.5, "", 2, True),
    ("a save of 200, ten million records ÷ 1,000", "growth", "save, large ÷ few", 1.5, "", 2, True),
)


class Costs:
    """The load of an account in a second of the busiest hour, and what it stores."""

    def __init__(self, data):
        figures = data["cluster"]["figures"]
        value = lambda name, what: figures[f"{name}, {what}"]["median"]
        requests = {"nothing": CHECKS, "few": SAVES, "news": FETCHES}
        rate = lambda what: sum(count * value(name, what) for name, count in requests.items()) * PEAK / DAY
        self.requests = (sum(requests.values()) + UPLOADS + DOWNLOADS) * PEAK / DAY
        self.server, self.database = rate("µs of the server's processor") * 1e-6 / BUSY, rate("µs of the database's processor") * 1e-6 / BUSY
        self.log = SAVES * value("few", "bytes of the log") * PEAK / DAY
        growth = data["growth"]
        # The bytes of a record beside its fields: its other columns, its index entries, and the free space in pages.
        self.beside = growth["figures"]["bytes, many"]["median"] / (growth["owners"] * growth["records"]) - growth["fieldBytes"]
        self.disk = STORED * (RECORD_BYTES + self.beside)
        asked = {name: sum(counts.values()) for name, counts in data["bucket"].items()}
        self.bucket_requests = (UPLOADS * asked["of 300 KB, sent at once"] + DOWNLOADS * asked["of 300 KB, fetched"]) * PEAK / DAY + SWEPT / DAY
        self.assets = ASSETS * ASSET_BYTES
        self.asset_rate = (UPLOADS + DOWNLOADS) * ASSET_BYTES * PEAK / DAY

    def servers(self, accounts):
        return max(2, math.ceil(max(accounts * self.server / SERVER_CORES, accounts * WAITING / SERVER_WAITING)))

    def limits(self):
        """Returns the numbers of accounts at which one database is full, by the part that is full first."""
        each = {"its disk": self.disk / DISK, "its processors": self.database / CORES, "its log": self.log / LOG}
        servers = CONNECTIONS // POOL
        found = {name: 1 / share for name, share in each.items()}
        found["connections of servers"] = servers / max(self.server / SERVER_CORES, WAITING / SERVER_WAITING)
        return dict(sorted(found.items(), key=lambda it: it[1]))

    def databases(self, accounts):
        return math.ceil(accounts / min(self.limits().values()))


def accounts_text(value):
    return f"{count_text(value / 1e9)} billion" if value >= 1e9 else f"{count_text(value / 1e6)} million"


def count_text(value):
    return f"{value:,.0f}" if value >= 9.95 or value == round(value) else f"{value:.1f}"


def bytes_text(value):
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= size:
            return f"{count_text(value / size)} {unit}"
    return f"{value:.0f} bytes"


def spread(found, text=count_text):
    return text(found["median"]) if found["rounds"] == 1 else f"{text(found['median'])} ({text(found['min'])} – {text(found['max'])})"


def goal_row(data, words, benchmark, name, goal, unit, digits, is_most):
    found, text = data[benchmark]["figures"].get(name), lambda value: f"{value:,.{digits}f}"
    aim = f"{'≤' if is_most else '≥'} {goal:,}{unit}" if goal else "none"
    if found is None:
        return [words, aim, "not measured yet", "–"]
    median = found["median"]
    # A goal of 0 holds for every round, and not for the median.
    reached = found["max"] == 0 if not goal else median <= goal if is_most else median >= goal
    return [words, aim, f"{spread(found, text)}{unit}", "yes" if reached else "**no**"]


def has_all(data):
    return all(name in data for name in ("cluster", "growth", "placement", "bucket"))


def tables(data):
    if not has_all(data):
        return
    figures, growth, costs = data["cluster"]["figures"], data["growth"], Costs(data)
    whole = lambda value: f"{value:,.0f}"
    figure = lambda name, what: spread(figures[f"{name}, {what}"], whole) if figures[f"{name}, {what}"]["max"] >= 1 else "none"
    yield "scale-costs", PAGE, ["request", "server, µs of processor", "database, µs of processor", "bytes of WAL"], [
        [words, figure(name, "µs of the server's processor"), figure(name, "µs of the database's processor"), figure(name, "bytes of the log")]
        for name, words in NAMES.items()]
    yield "scale-goals", PAGE, ["what", "goal", "measured", "reached"], [goal_row(data, *it) for it in GOALS]
    yield "scale-bucket", PAGE, ["an asset", "PUT", "GET", "HEAD", "POST", "DELETE"], [
        [name, *(str(counts.get(method, 0)) for method in ("PUT", "GET", "HEAD", "POST", "DELETE"))] for name, counts in data["bucket"].items()]
    yield "scale-growth", PAGE, ["milliseconds, median of rounds", f"{growth['few']:,} owners × {growth['records']:,}",
                                 f"{growth['owners']:,} owners × {growth['records']:,}", "÷", f"one owner with {growth['large']:,}", "÷"], [
        [words, *(spread(growth["figures"][f"{name}, {it}"], lambda value: f"{value:.2f}") for it in ("few", "many", "many ÷ few", "large", "large ÷ few"))]
        for name, words in (("look-up", "a look-up"), ("save", "a save of 200"), ("news", "the 200 changes since a token"), ("page", "a page of a zone"))]
    rows = {
        "requests a second, in the busiest hour": lambda it: count_text(it * costs.requests),
        "servers' cores": lambda it: count_text(it * costs.server),
        f"servers of {SERVER_CORES} cores, or by the devices that wait": lambda it: count_text(costs.servers(it)),
        "database: cores": lambda it: count_text(it * costs.database),
        "database: size": lambda it: bytes_text(it * costs.disk),
        "database: WAL a second": lambda it: bytes_text(it * costs.log),
        "databases, each with its replicas": lambda it: count_text(costs.databases(it)),
        "bucket: size": lambda it: bytes_text(it * costs.assets),
        "bucket: requests a second": lambda it: count_text(it * costs.bucket_requests),
        "bucket: bytes a second": lambda it: bytes_text(it * costs.asset_rate),
    }
    yield "scale-needs", PAGE, ["accounts", *(accounts_text(it) for it in SIZES)], [[name, *map(row, SIZES)] for name, row in rows.items()]
    placement, ratio = data["placement"], lambda value: f"{value:.2f}"
    yield "scale-skew", PAGE, ["databases", "accounts of each", "the fullest beside the mean, by a hash", f"with a table of the largest {placement['known']:,}"], [
        [count, f"{placement['accounts'] // int(count):,}", spread(found, ratio), spread(placement["tables"][count], ratio)]
        for count, found in sorted(placement["shards"].items(), key=lambda it: int(it[0]))]


def pictures(data):
    if not has_all(data):
        return {}
    return {"scale-limits": lambda theme: draw_limits(Costs(data), theme), "scale-skew": lambda theme: draw_skew(data["placement"], theme)}


WIDTH = 840


def draw_limits(costs, theme):
    limits = costs.limits()
    left, right, top, row = 220, 700, 74, 34
    low, high = 10 ** math.floor(math.log10(min(limits.values()))), 10 ** math.ceil(math.log10(max(limits.values())))
    place = lambda value: left + (right - left) * math.log(value / low) / math.log(high / low)
    bottom = float(top + row * len(limits) + 8)
    height = int(bottom) + 66
    spoken = "; ".join(f"{name}: {accounts_text(value)}" for name, value in limits.items())
    it = drawing.Picture(theme, WIDTH, height, "How many accounts one database takes", f"Bars with a logarithmic axis. By each part alone, one database is full at: {spoken}.")
    it.text(24, 36, "How many accounts one database takes, by each part alone", size=19, bold=True)
    power = round(math.log10(low))
    while 10 ** power <= high:
        x = place(10 ** power)
        it.line(x, top - 8, x, bottom, colour="grid", thickness=1)
        it.text(x, bottom + 18, accounts_text(10 ** power), size=12.5, colour="muted", anchor="middle")
        power += 1
    for index, (name, value) in enumerate(limits.items()):
        y = top + row * index
        first = index == 0
        colour = "orange" if first else "blue"
        it.text(left - 12, y + 18, name, size=14, anchor="end", bold=first)
        it.box(left, y + 3, place(value) - left, row - 14, fill=f"{colour}-box", stroke=colour, radius=3)
        it.text(place(value) + 10, y + 18, accounts_text(value), size=13.5, bold=True, colour=colour)
    it.text(24, height - 15, f"The busiest hour, machines at {BUSY:.0%}: {CORES} cores, {bytes_text(DISK)} of disk, {bytes_text(LOG)} of log a second, {CONNECTIONS:,} connections.", size=12.5, colour="muted")
    return it.svg()


def draw_skew(placement, theme):
    counts = sorted(placement["shards"], key=int)
    series = [("by a hash of the owner", placement["shards"], "blue"), (f"with a table of the largest {placement['known']:,} accounts", placement["tables"], "orange")]
    left, right, top, bottom = 70, 800, 106, 330
    height = bottom + 80
    # The axis is logarithmic: powers of two.
    most = max(1, math.ceil(math.log2(max(values["max"] for _, found, _ in series for values in found.values()))))
    across = lambda index: float(left + 40 + (right - left - 80) * index / (len(counts) - 1))
    down = lambda value: float(bottom - (bottom - top) * math.log2(value) / most)
    spoken = "; ".join(f"{count} databases: {placement['shards'][count]['median']:.2f} by a hash, {placement['tables'][count]['median']:.2f} with a table" for count in counts)
    it = drawing.Picture(theme, WIDTH, height, "How full the fullest database is", f"The fullest database beside the mean one, for each number of databases. {spoken}.")
    it.text(24, 36, "How full the fullest database is, beside the mean one", size=19, bold=True)
    begin = 24
    for name, _, colour in series:
        mark(it, begin + 6, 62, colour)
        it.text(begin + 18, 67, name, size=13.5, colour=colour)
        begin += 60 + 7.2 * len(name)
    for power in range(most + 1):
        value = 2 ** power
        it.line(left, down(value), right, down(value), colour="muted" if power == 0 else "grid", thickness=1)
        it.text(left - 10, down(value) + 4, f"{value}×", size=12.5, colour="muted", anchor="end")
    for order, (_, found, colour) in enumerate(series):
        places = [(across(index), found[count]) for index, count in enumerate(counts)]
        for (one, first), (other, second) in zip(places, places[1:]):
            it.line(one, down(first["median"]), other, down(second["median"]), colour=colour, thickness=1.5)
        for x, values in places:
            it.line(x, down(values["min"]), x, down(values["max"]), colour=colour, thickness=2)
            for end in ("min", "max"):
                it.line(x - 5, down(values[end]), x + 5, down(values[end]), colour=colour, thickness=2)
            mark(it, x, down(values["median"]), colour)
            # The first series has its label above its line, the second below.
            if order == 0:
                it.text(x - 9, down(values["median"]) - 8, f"{values['median']:.2f}", size=13, bold=True, colour=colour, anchor="end")
    for index, count in enumerate(counts):
        it.text(across(index), bottom + 22, f"{int(count):,}", size=12.5, colour="muted", anchor="middle")
    it.text((left + right) / 2, bottom + 42, f"databases, over which {placement['accounts']:,} accounts are spread", size=12.5, colour="muted", anchor="middle")
    it.text(24, height - 14, f"Medians of {placement['largest']['rounds']} rounds, lines from the least to the most; the axis is logarithmic. The largest account has {placement['largest']['median']:.1%} of all records.",
            size=12.5, colour="muted")
    return it.svg()


def mark(it, x, y, colour):
    if colour == "blue":
        it.add("circle", cx=float(x), cy=float(y), r=4.5, fill=it.colour(colour), stroke=it.colour("page"), stroke_width=1)
    else:
        it.add("path", d=f"M{x:.1f} {y - 6:.1f} L{x + 6:.1f} {y:.1f} L{x:.1f} {y + 6:.1f} L{x - 6:.1f} {y:.1f} Z", fill=it.colour(colour), stroke=it.colour("page"), stroke_width=1)
