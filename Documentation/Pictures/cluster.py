"""Draws cluster-{light,dark}.svg: what a cloud of several servers is made of. Called by diagrams.py."""

import drawing

# Boxes: place (x, y, width, height), colour, title, the lines below it.
BOXES = [
    ((24, 116, 120, 88), "blue", "Devices", ["Tidemark,", "browsers"]),
    ((208, 116, 112, 88), "violet", "Proxy", ["TLS,", "asks /ready"]),
    ((384, 36, 132, 60), "green", "Server", ["keeps nothing"]),
    ((384, 130, 132, 60), "green", "Server", ["keeps nothing"]),
    ((384, 224, 132, 60), "green", "Server", ["keeps nothing"]),
    ((616, 76, 132, 60), "orange", "Primary", ["takes writes"]),
    ((780, 52, 116, 44), "orange", "Replica", ["synchronous"]),
    ((780, 116, 116, 44), "orange", "Replica", []),
    ((616, 226, 280, 60), "orange", "Bucket", ["contents of assets, by their SHA-256"]),
]
FRAME = (600, 20, 312, 178)
SERVERS = [66, 160, 254]


def draw(theme):
    it = drawing.Picture(
        theme, 936, 312, "A cloud of several servers",
        "Devices and browsers reach a proxy, which leads to any of three servers that are ready. The servers keep nothing of their own: records, "
        "accounts and sessions are in PostgreSQL, whose primary takes all writes and sends them to a synchronous replica and to another one; the "
        "contents of assets are in a bucket.")
    x, y, width, height = FRAME
    it.box(x, y, width, height, fill="panel", stroke="grid", radius=12)
    it.text(x + 16, y + 24, "PostgreSQL", size=14, bold=True, colour="muted")
    it.text(x + 16, y + height - 12, "records · accounts · sessions · notifications", size=12.5, colour="muted")
    it.arrow([(144, 160), (208, 160)], both=True)
    for place in SERVERS:
        it.arrow([(320, 160), (350, 160), (350, place), (384, place)] if place != 160 else [(320, 160), (384, 160)])
        it.line(516, place, 560, place)
    it.line(560, SERVERS[0], 560, SERVERS[-1])
    it.arrow([(560, 106), (616, 106)])
    it.arrow([(560, 254), (616, 254)])
    it.arrow([(748, 106), (764, 106), (764, 74), (780, 74)])
    it.arrow([(748, 106), (764, 106), (764, 138), (780, 138)], dashed=True)
    for (x, y, width, height), colour, title, lines in BOXES:
        it.box(x, y, width, height, fill=f"{colour}-box", stroke=colour, radius=7)
        first = y + height / 2 - 17 * len(lines) / 2 + 5
        it.text(x + width / 2, first, title, size=15, bold=True, anchor="middle", colour=colour)
        for number, line in enumerate(lines, 1):
            it.text(x + width / 2, first + 17 * number, line, size=12.5, anchor="middle")
    return it.svg()


def write(is_check):
    return drawing.write("cluster", draw, is_check)
