"""The pictures of the article Models, in Sources/Tidemark/Tidemark.docc: the graph of a travel journal, a type in two versions, and queries
along the graph. Each is one file with the colours of both themes, because the site of the reference shows one file."""

import pathlib
from xml.sax.saxutils import escape

import drawing

FOLDER = drawing.folder.parent.parent / "Sources/Tidemark/Tidemark.docc"

# Text has a contrast of at least 4.5 : 1 with what is under it, lines that carry meaning 3 : 1.
STYLE = """
    .page { fill: #ffffff } .box { fill: #ffffff; stroke: #3b6ea5; stroke-width: 1.5 } .other { stroke: #8a8a8a }
    .share { fill: #3b6ea5; fill-opacity: 0.10; stroke: #3b6ea5; stroke-dasharray: 5 4 } .new { fill: #fff1e5; stroke: #953800 }
    .own { stroke: #3b6ea5; stroke-width: 2.5; fill: none } .weak { stroke: #8a8a8a; stroke-width: 1.5; stroke-dasharray: 4 4; fill: none }
    .ask { stroke: #953800; stroke-width: 2; fill: none } text { fill: #1d1d1f } .note { fill: #5f6368; font-size: 13px }
    .code { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, monospace; font-size: 13px } .asked { fill: #953800 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #1d1d1f } .box { fill: #1d1d1f; stroke: #8ab4f8 } .other { stroke: #9aa0a6 } .share { fill: #8ab4f8; stroke: #8ab4f8 }
      .new { fill: #3d2204; stroke: #ffa657 } .own { stroke: #8ab4f8 } .weak { stroke: #9aa0a6 } .ask { stroke: #ffa657 }
      text { fill: #e8eaed } .note { fill: #bdc1c6 } .asked { fill: #ffa657 }
    }
"""


class Graph:
    """A picture of boxes and arrows whose colours a style sheet gives."""

    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="15">',
            f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="10"/>',
        ]

    def rect(self, kind, x, y, width, height, radius=6):
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>')

    def text(self, x, y, text, kind=None, anchor="start"):
        kind = f' class="{kind}"' if kind else ""
        anchor = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text{kind} x="{x}" y="{y}"{anchor}>{escape(text)}</text>')

    def node(self, name, x, y, kind="box", width=100):
        self.rect(kind, x, y, width, 44)
        self.text(x + width / 2, y + 27, name, anchor="middle")

    def arrow(self, kind, *points):
        """A line through points, with an open head at its end."""
        (x1, y1), (x2, y2) = points[-2:]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        along, size = ((x2 - x1) / length, (y2 - y1) / length), 9
        heads = [(x2 - size * (along[0] - side * along[1] * 0.6), y2 - size * (along[1] + side * along[0] * 0.6)) for side in (1, -1)]
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        head = f"M{heads[0][0]:.1f} {heads[0][1]:.1f} L{x2:g} {y2:g} L{heads[1][0]:.1f} {heads[1][1]:.1f}"
        self.parts.append(f'<path class="{kind}" d="{path}"/><path class="{kind}" style="stroke-dasharray: none" d="{head}"/>')

    def svg(self):
        return "\n".join([*self.parts, "</svg>", ""])


def graph():
    it = Graph(720, 300, "A trip owns stops, a stop owns photos; stops refer to tags and to a guide; a booking refers to a trip")
    it.rect("share", 20, 30, 480, 130, 12)
    it.text(34, 22, "shared as one, with the trip", "note")
    for name, x in (("Trip", 40), ("Stop", 210), ("Photo", 380)):
        it.node(name, x, 75)
    for name, x in (("Booking", 40), ("Tag", 170), ("Guide", 300)):
        it.node(name, x, 220, "box other")
    it.text(175, 66, "owned(by: \\.trip)", "note", "middle")
    it.text(345, 66, "owned(by: \\.stop)", "note", "middle")
    it.arrow("own", (210, 97), (144, 97))
    it.arrow("own", (380, 97), (314, 97))
    it.arrow("weak", (90, 220), (90, 123))
    it.arrow("weak", (250, 119), (224, 216))
    it.arrow("weak", (278, 119), (340, 216))
    it.text(82, 196, "deny", "note", "end")
    it.text(222, 190, "nullify, many", "note", "end")
    it.text(332, 180, "nullify", "note")
    it.parts.append('<line class="own" x1="430" y1="226" x2="470" y2="226"/><line class="weak" x1="430" y1="254" x2="470" y2="254"/>')
    it.text(480, 231, "owned: shared and deleted with it", "note")
    it.text(480, 259, "weak: apart, and never left dangling", "note")
    return it.svg()


def evolution():
    it = Graph(760, 268, "A type in two versions: a property is renamed, one is new, one has another type, and an enumeration has a new case")
    for x, title in ((20, "Trip, version 1"), (470, "Trip, version 2")):
        it.rect("box", x, 40, 270, 196, 10)
        it.text(x + 16, 28, title)
    rows = [
        ("var name: String", "var title: String", "formerFieldNames"),
        ("", "var nights = 1", "prototype"),
        ("var stars: Int?", "var rating: Double?", "changeSchema"),
        ("var kind: Kind", "var kind: Kind", None),
    ]
    for number, (before, after, means) in enumerate(rows):
        y = 72 + 36 * number
        it.text(36, y, before, "code")
        if means:
            it.rect("box new", 480, y - 19, 250, 28, 5)
            it.arrow("ask", (296, y - 5), (464, y - 5))
            it.text(380, y - 11, means, "code asked", "middle")
        it.text(486, y, after, "code asked" if means else "code")
    y = 72 + 36 * len(rows)
    it.text(36, y, "case train, ship", "code")
    it.text(486, y, "case train, ship, foot", "code")
    it.arrow("ask", (464, y - 5), (296, y - 5))
    it.text(380, y - 11, "unreadable", "code asked", "middle")
    it.text(20, 258, "Version 2 reads what version 1 has saved. What version 1 can't read, it leaves out, and names.", "note")
    return it.svg()


def queries():
    it = Graph(860, 310, "Queries along the graph: the stops of trips, the trips that have a stop, the number of photos of each stop, tags, entries with their stops, and words")
    it.text(20, 28, "An arrow leads from what you have to what you get. Each is one query, however many records there are.", "note")
    for name, x, y, width in (("Trip", 20, 90, 100), ("Stop", 380, 90, 100), ("Photo", 740, 90, 100), ("Tag", 380, 230, 100), ("DiaryEntry", 720, 230, 120)):
        it.node(name, x, y, width=width)
    it.arrow("ask", (120, 104), (374, 104))
    it.text(247, 78, "fetchAll(Trip.stops, of: trips)", "code asked", "middle")
    it.text(247, 96, ".field(\\.trip).matches(…)", "code asked", "middle")
    it.arrow("ask", (380, 122), (126, 122))
    it.text(247, 142, ".isReferenced(by: \\Stop.trip)", "code asked", "middle")
    it.arrow("ask", (480, 112), (734, 112))
    it.text(607, 86, "fetchAll(Stop.photos, of: stops)", "code asked", "middle")
    it.text(607, 104, "counts(Stop.photos, of: stops)", "code asked", "middle")
    it.arrow("ask", (412, 134), (412, 224))
    it.text(402, 184, "fetchAll(stop.tags)", "code asked", "end")
    it.arrow("ask", (448, 230), (448, 140))
    it.text(458, 220, "fetchAll(Tag.stops, …)", "code asked")
    it.arrow("ask", (720, 240), (484, 130))
    it.text(640, 170, "fetchAll(…, joining: \\.stop)", "code asked")
    it.arrow("ask", (600, 262), (714, 262))
    it.text(714, 290, "search(DiaryEntry.self, \"fjord\")", "code asked", "end")
    it.text(20, 268, "of one type: fetchPage, sections,", "note")
    it.text(20, 286, "aggregates, distinctValues", "note")
    return it.svg()


PICTURES = {"models.svg": graph, "models-evolution.svg": evolution, "models-queries.svg": queries}


def write(is_check):
    """Writes the pictures, or compares them with what is there. Returns the files that differ."""
    differing = []
    for name, draw in PICTURES.items():
        path, text = FOLDER / name, draw()
        if not is_check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            differing.append(name)
    return differing
