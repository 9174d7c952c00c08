#!/usr/bin/env python3
"""Draws how the parts of Tidemark work together: architecture-light.svg and architecture-dark.svg beside this file."""

import pathlib

THEMES = {
    "light": {"ink": "#1f2328", "soft": "#59636e", "line": "#8c959f", "box": "#f6f8fa", "core": "#ddf4ff", "cloud": "#dafbe1", "border": "#d1d9e0"},
    "dark": {"ink": "#f0f6fc", "soft": "#9198a1", "line": "#656c76", "box": "#151b23", "core": "#0c2d4a", "cloud": "#0f2f1a", "border": "#3d444d"},
}
# x, y, width, height, fill, title, lines below it
BOXES = [
    (20, 20, 240, 64, "box", "Your app", ["import Tidemark"]),
    (280, 20, 240, 64, "box", "tidemark", ["the command-line tool"]),
    (560, 20, 240, 64, "box", "Another process", ["an app, an extension, the tool"]),
    (20, 130, 500, 64, "core", "Tidemark", ["records, contexts, history, undo, permissions"]),
    (20, 240, 240, 84, "core", "Container", ["private and shared store, assets", "plain SQLite files"]),
    (280, 240, 240, 84, "core", "Sync engine", ["export and import schedulers,", "conflict resolver, sync issues"]),
    (20, 370, 240, 64, "box", "C core", ["libsqlite3 · libxxhash"]),
    (560, 190, 240, 84, "cloud", "A cloud in a directory", ["on a disk that devices share"]),
    (560, 320, 240, 114, "cloud", "tidemark-server", ["the same cloud over HTTP,", "CloudKit Web Services:", "accounts, shares, notifications"]),
]
# From and to, as points, with a label beside the middle; an arrow at both ends where data goes both ways
ARROWS = [
    ((140, 84), (140, 130), "", False), ((400, 84), (400, 130), "", False),
    ((140, 194), (140, 240), "", True), ((400, 194), (400, 240), "", True),
    ((260, 282), (280, 282), "", True), ((140, 324), (140, 370), "", True),
    ((520, 262), (560, 242), "", True), ((520, 302), (560, 350), "", True),
]


def text(x, y, words, size, fill, weight="normal"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="middle">'
            + words.replace("&", "&amp;").replace("<", "&lt;") + "</text>")


def draw(colours):
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 454" width="820" height="454" role="img"'
           ' font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" aria-labelledby="title desc">',
           '<title id="title">How the parts of Tidemark work together</title>',
           '<desc id="desc">Apps and the tool use the Tidemark API. It keeps records in a container of SQLite files by the C core. Other processes open the '
           'same container and are notified of changes. The sync engine exchanges changes with a cloud in a directory, or with tidemark-server.</desc>',
           f'<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
           f'<path d="M0,0 L8,4 L0,8 z" fill="{colours["line"]}"/></marker></defs>']
    # Another process opens the same container, beside all that is in between.
    out.append(f'<path d="M680,84 V108 H540 V222 H200 V240" fill="none" stroke="{colours["line"]}" stroke-width="1.5" stroke-dasharray="5 4" '
               'marker-end="url(#end)"/>')
    out.append(f'<text x="548" y="150" font-size="12" fill="{colours["soft"]}">opens the same container,</text>')
    out.append(f'<text x="548" y="166" font-size="12" fill="{colours["soft"]}">is notified of each commit</text>')
    for (x1, y1), (x2, y2), _, both in ARROWS:
        start = ' marker-start="url(#end)"' if both else ""
        out.append(f'<path d="M{x1},{y1} L{x2},{y2}" stroke="{colours["line"]}" stroke-width="1.5"{start} marker-end="url(#end)"/>')
    for x, y, width, height, fill, title, lines in BOXES:
        out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colours[fill]}" stroke="{colours["border"]}"/>')
        top = y + (height - 20 - 18 * len(lines)) / 2 + 16
        out.append(text(x + width / 2, top, title, 16, colours["ink"], "600"))
        for number, line in enumerate(lines):
            out.append(text(x + width / 2, top + 20 + 18 * number, line, 13, colours["soft"]))
    return "\n".join(out + ["</svg>", ""])


if __name__ == "__main__":
    for name, colours in THEMES.items():
        (pathlib.Path(__file__).parent / f"architecture-{name}.svg").write_text(draw(colours))
