#!/usr/bin/env python3
"""Draws architecture-{light,dark}.svg, how the parts work together, modules-{light,dark}.svg, the modules of the package and what
they import, from `swift package dump-package`, the pictures of the article Models (models.py), and a cloud of several servers (cluster.py)."""

import argparse
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster
import drawing
import models

ROOT = drawing.folder.parent.parent

# The parts: name, place (x, y, width, height), and its title; of a box also the colour and the lines below the title, in which | breaks.
FRAMES = [
    ("device", (16, 16, 636, 480), "A device"),
    ("clouds", (690, 128, 134, 368), "A cloud"),
    ("container", (172, 220, 240, 136), "Container"),
    ("engine", (470, 220, 164, 136), "Sync engine"),
]
BOXES = [
    ("program", (172, 52, 222, 56), "blue", "Your program", ["Swift"]),
    ("tool", (412, 52, 222, 56), "blue", "tidemark", ["the command line"]),
    ("api", (172, 134, 462, 60), "blue", "Tidemark API", ["records · queries · history · undo · sharing · import"]),
    ("others", (32, 220, 104, 136), "violet", "Other|processes", ["app, widget,", "extension"]),
    ("private", (184, 252, 104, 56), "green", "Private store", ["own records"]),
    ("shared", (296, 252, 104, 56), "green", "Shared store", ["of other people"]),
    ("assets", (184, 316, 216, 30), "green", "Assets", []),
    ("resolver", (482, 252, 140, 28), "green", "Conflict resolver", []),
    ("import", (482, 284, 140, 28), "green", "Import scheduler", []),
    ("export", (482, 316, 140, 28), "green", "Export scheduler", []),
    ("core", (172, 384, 240, 40), "orange", "Core in C", []),
    ("sqlite", (172, 444, 148, 36), "orange", "SQLite", []),
    ("xxhash", (336, 444, 76, 36), "orange", "xxHash", []),
    ("directory", (702, 164, 110, 96), "violet", "A directory", ["embedded in", "the program"]),
    ("server", (702, 372, 110, 108), "violet", "A server", ["HTTP:", "CloudKit", "Web Services"]),
]
# The arrows: points, whether it has two heads, whether it is dashed, and the label with its place.
ARROWS = [
    ([(283, 108), (283, 134)], False, False, None),
    ([(523, 108), (523, 134)], False, False, None),
    ([(292, 194), (292, 220)], False, False, None),
    ([(552, 194), (552, 220)], False, False, None),
    ([(292, 356), (292, 384)], False, False, None),
    ([(246, 424), (246, 444)], False, False, None),
    ([(374, 424), (374, 444)], False, False, None),
    ([(136, 288), (172, 288)], True, True, None),
    ([(412, 288), (470, 288)], True, False, ("changes", 441, 279)),
    ([(634, 246), (671, 246), (671, 212), (702, 212)], True, False, None),
    ([(634, 330), (671, 330), (671, 426), (702, 426)], True, False, None),
    ([(757, 372), (757, 260)], False, False, None),
]
LABELS = [
    # Beside a line: text lines, x, y of the first, anchor.
    (["change", "notifications", "between the", "processes"], 84, 376, "middle"),
    (["keeps its", "data in"], 750, 312, "end"),
]


def architecture(theme):
    it = drawing.Picture(
        theme, 840, 512, "How the parts of Tidemark work together",
        "Your program and the command-line tool tidemark use the Tidemark API. The API works on a container, which has a private store for "
        "own records, a shared store for the records of other people, and assets. Other processes use the same container; change notifications "
        "inform them. A core in C writes the stores, over SQLite and xxHash. The sync engine, with export scheduler, import scheduler and conflict "
        "resolver, exchanges changes between the container and a cloud. A cloud is a directory, embedded in the program, or a server over "
        "HTTP with CloudKit Web Services, which keeps its data in such a directory.")
    for name, (x, y, width, height), title in FRAMES:
        outer = name in ("device", "clouds")
        it.box(x, y, width, height, fill="panel" if outer else "page", stroke="grid" if outer else "line", radius=12 if outer else 9)
        it.text(x + (16 if outer else 12), y + 24 - (0 if outer else 2), title, size=14 if outer else 14.5, bold=True, colour="muted" if outer else "text")
    for points, both, dashed, label in ARROWS:
        it.arrow(points, both=both, dashed=dashed)
        if label:
            it.text(label[1], label[2], label[0], size=11.5, colour="muted", anchor="middle")
    for _, (x, y, width, height), colour, title, lines in BOXES:
        small = height <= 30 or width <= 110
        it.box(x, y, width, height, fill=f"{colour}-box", stroke=colour, radius=7)
        size, step = (12.5 if small else 15), 17
        titles = title.split("|")
        first = y + height / 2 - step * (len(titles) + len(lines) - 1) / 2 + 5
        for number, line in enumerate([*titles, *lines]):
            is_title = number < len(titles)
            it.text(x + width / 2, first + step * number, line, size=size if is_title else 12.5, bold=is_title, anchor="middle",
                    colour=colour if is_title else "text")
    for lines, x, y, anchor in LABELS:
        for number, line in enumerate(lines):
            it.text(x, y + 15 * number, line, size=12, colour="muted", anchor=anchor)
    return it.svg()


# The modules.

def read_modules(dump):
    """The modules of Sources and the C modules of ours that they import: name → names, without those that another one imports already."""
    kinds = {target["name"]: target for target in dump["targets"]}
    ours = {name for name, target in kinds.items()
            if target["type"] in ("regular", "executable") and (target.get("path") is None or target["path"].startswith("CSupport/"))}
    imports = {}
    for name in sorted(ours):
        named = set()
        for dependency in kinds[name]["dependencies"]:
            value = dependency.get("byName") or dependency.get("target")
            if value and value[0] in ours:
                named.add(value[0])
        imports[name] = named
    below = {}

    def reach(name):
        if name not in below:
            below[name] = set()
            for it in sorted(imports[name]):
                below[name] |= {it} | reach(it)
        return below[name]

    for name in imports:
        reach(name)
    direct = {name: sorted(it for it in named if not any(it in below[other] for other in named)) for name, named in imports.items()}
    colour = {name: "orange" if name.startswith("C") else "blue" if kinds[name]["type"] == "executable" else "green" for name in ours}
    for product in dump["products"]:
        if "library" in product["type"]:
            colour.update({name: "violet" for name in product["targets"] if name in colour})
    return direct, colour


def layers_of(direct):
    """A layer for each module, 0 at the bottom: one above the highest that it imports."""
    heights = {}

    def height(name):
        if name not in heights:
            heights[name] = 1 + max((height(it) for it in direct[name]), default=-1)
        return heights[name]

    for name in direct:
        height(name)
    # A module that could stand higher does: beside those that import it, so that arrows are short.
    users = {name: [it for it in direct if name in direct[it]] for name in direct}
    for name in sorted(direct, key=lambda it: -heights[it]):
        if users[name]:
            heights[name] = max(heights[name], min(heights[it] for it in users[name]) - 1)
    return heights


WIDTH, MARGIN, BOX, STEP, GAP = 940, 20, 30, 74, 14
THIN = 10.0


def arrange(direct):
    """Layers of nodes from the top down, in an order with few crossings; a long arrow has a node (name, name, layer) in each layer that it passes."""
    heights = layers_of(direct)
    top = max(heights.values())
    layers = [[] for _ in range(top + 1)]
    for name in sorted(direct):
        layers[heights[name]].append(name)
    edges = []
    for name in sorted(direct):
        for other in direct[name]:
            chain = [name]
            for level in range(heights[name] - 1, heights[other], -1):
                node = (name, other, level)
                layers[level].append(node)
                chain.append(node)
            chain.append(other)
            edges.append(chain)
    links = [pair for chain in edges for pair in zip(chain, chain[1:])]
    up, down = {}, {}
    for above, under in links:
        up.setdefault(under, []).append(above)
        down.setdefault(above, []).append(under)

    def crossings(layers):
        place = {node: index for layer in layers for index, node in enumerate(layer)}
        level = {node: number for number, layer in enumerate(layers) for node in layer}
        count = 0
        for number in range(1, len(layers)):
            pairs = sorted((place[a], place[b]) for a, b in links if level[a] == number)
            count += sum(1 for i, first in enumerate(pairs) for second in pairs[i + 1:] if first[0] < second[0] and first[1] > second[1])
        return count

    best, fewest = [list(layer) for layer in layers], crossings(layers)
    for turn in range(60):
        order = range(1, len(layers)) if turn % 2 == 0 else range(len(layers) - 2, -1, -1)
        beside = down if turn % 2 == 0 else up
        for number in order:
            place = {node: index / max(1, len(layer) - 1) for layer in layers for index, node in enumerate(layer)}
            means = {node: sum(place[it] for it in beside[node]) / len(beside[node]) if beside.get(node) else place[node] for node in layers[number]}
            layers[number].sort(key=lambda node: (means[node], str(node)))
        # Neighbours that cross less the other way are exchanged.
        improved = True
        while improved:
            improved = False
            for layer in layers:
                for index in range(len(layer) - 1):
                    before = crossings(layers)
                    layer[index], layer[index + 1] = layer[index + 1], layer[index]
                    if crossings(layers) < before:
                        improved = True
                    else:
                        layer[index], layer[index + 1] = layer[index + 1], layer[index]
        if crossings(layers) < fewest:
            best, fewest = [list(layer) for layer in layers], crossings(layers)
    return best, edges, up, down


def width_of(node):
    return 8.3 * len(node) + 18 if isinstance(node, str) else THIN


def places(layers, up, down):
    """The middle of each node: near what it is connected with, in order, without overlaps, within the picture."""
    x = {}
    for layer in layers:
        total = sum(map(width_of, layer)) + GAP * (len(layer) - 1)
        if total > WIDTH - 2 * MARGIN:
            sys.exit("diagrams.py: a layer of the modules is wider than the picture")
        begin = (WIDTH - total) / 2
        for node in layer:
            x[node] = begin + width_of(node) / 2
            begin += width_of(node) + GAP
    for turn in range(80):
        order = layers if turn % 2 else list(reversed(layers))
        for layer in order:
            wish = {}
            for node in layer:
                beside = (up.get(node, []) + down.get(node, []))
                wish[node] = sum(x[it] for it in beside) / len(beside) if beside else x[node]
            # From both sides, then the middle of the two: each keeps its distance.
            left, limit = {}, MARGIN
            for node in layer:
                left[node] = max(wish[node], limit + width_of(node) / 2)
                limit = left[node] + width_of(node) / 2 + GAP
            right, limit = {}, WIDTH - MARGIN
            for node in reversed(layer):
                right[node] = min(wish[node], limit - width_of(node) / 2)
                limit = right[node] - width_of(node) / 2 - GAP
            both = {node: (left[node] + right[node]) / 2 for node in layer}
            limit = WIDTH - MARGIN
            for node in reversed(layer):
                both[node] = min(both[node], limit - width_of(node) / 2)
                limit = both[node] - width_of(node) / 2 - GAP
            limit = MARGIN
            for node in layer:
                both[node] = max(both[node], limit + width_of(node) / 2)
                limit = both[node] + width_of(node) / 2 + GAP
            x.update(both)
    # The whole is moved to the middle.
    least, most = min(value - width_of(node) / 2 for node, value in x.items()), max(value + width_of(node) / 2 for node, value in x.items())
    return {node: round(value + (WIDTH - least - most) / 2, 1) for node, value in x.items()}


def modules(dump, theme):
    direct, colour = read_modules(dump)
    layers, edges, up, down = arrange(direct)
    x = places(layers, up, down)
    height = 84 + STEP * (len(layers) - 1) + BOX + 22
    level = {node: number for number, layer in enumerate(layers) for node in layer}
    y = {node: 72 + STEP * (len(layers) - 1 - level[node]) for node in level}
    spoken = "; ".join(f"{name} imports {', '.join(direct[name])}" for name in sorted(direct) if direct[name])
    it = drawing.Picture(theme, WIDTH, height, "The modules of Tidemark, and what they import",
                         f"Modules in layers. Arrows lead down, from a module to those that it imports; what follows from other arrows is left out. {spoken}.")
    legend = [("blue", "program", "double"), ("violet", "module of a library product", ""), ("green", "internal module", ""), ("orange", "C", "dashed")]
    begin = MARGIN
    for name, words, style in legend:
        frame(it, begin, 20, 26, 18, name, style)
        it.text(begin + 34, 34, words, size=12.5, colour="muted")
        begin += 34 + 7.2 * len(words) + 24
    it.text(WIDTH - MARGIN, 34, "an arrow: imports", size=12.5, colour="muted", anchor="end")
    style = {"blue": "double", "orange": "dashed"}
    for chain in edges:
        points = [(x[chain[0]], y[chain[0]] + BOX)]
        for node in chain[1:-1]:
            points += [(x[node], y[node]), (x[node], y[node] + BOX)]
        points.append((x[chain[-1]], float(y[chain[-1]])))
        curve(it, points)
    for layer in layers:
        for node in layer:
            if isinstance(node, str):
                frame(it, x[node] - width_of(node) / 2, y[node], width_of(node), BOX, colour[node], style.get(colour[node], ""))
                it.text(x[node], y[node] + 20, node, size=12.5, bold=True, colour=colour[node], anchor="middle")
    return it.svg()


def frame(it, x, y, width, height, colour, style):
    """A box whose kind shows without its colour, too."""
    it.box(x, y, width, height, fill=f"{colour}-box", stroke=colour, radius=6, dashed=style == "dashed")
    if style == "double":
        it.box(x + 2.5, y + 2.5, width - 5, height - 5, fill="none", stroke=colour, radius=4, thickness=0.75)


def curve(it, points):
    """A smooth line down through the points, with a head at its end."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    points = points[:-1] + [(points[-1][0], points[-1][1] - 6)]
    for (x1, y1), (x2, y2) in zip(points, points[1:]):
        bend = (y2 - y1) / 2
        path += f" C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
    it.add("path", d=path, fill="none", stroke=it.colour("line"), stroke_width=1.25)
    x, y = points[-1]
    it.add("path", d=f"M{x:.1f} {y + 6:.1f} L{x - 3.5:.1f} {y - 1:.1f} L{x + 3.5:.1f} {y - 1:.1f} Z", fill=it.colour("line"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if the pictures differ from what is there")
    parser.add_argument("--package", type=pathlib.Path, metavar="FILE", help="read this output of 'swift package dump-package' and do not run it")
    options = parser.parse_args()
    if options.package:
        dump = json.loads(options.package.read_text(encoding="utf-8"))
    else:
        try:
            run = subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"diagrams.py: 'swift package dump-package' failed: {error}")
        dump = json.loads(run.stdout)
    differing = drawing.write("architecture", architecture, options.check)
    differing += drawing.write("modules", lambda theme: modules(dump, theme), options.check)
    differing += models.write(options.check)
    differing += cluster.write(options.check)
    drawing.end("diagrams.py", differing, options.check)


if __name__ == "__main__":
    main()
