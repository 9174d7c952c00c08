"""Pictures as SVG, each in a light and a dark version: the colours, the shapes, and the writing and comparing of the files."""

import pathlib
import sys
from xml.sax.saxutils import escape

folder = pathlib.Path(__file__).resolve().parent

# Text has a contrast of at least 4.5 : 1 with what is under it, lines that carry meaning 3 : 1.
THEMES = {
    "light": {
        "page": "#ffffff", "panel": "#f6f8fa", "box": "#ffffff", "text": "#1f2328", "muted": "#59636e", "grid": "#d8dee4", "line": "#6e7781",
        "blue": "#0550ae", "blue-box": "#ddf4ff", "orange": "#953800", "orange-box": "#fff1e5", "green": "#116329", "green-box": "#dafbe1",
        "violet": "#6639ba", "violet-box": "#fbefff",
    },
    "dark": {
        "page": "#0d1117", "panel": "#151b23", "box": "#0d1117", "text": "#f0f6fc", "muted": "#9ba4ae", "grid": "#2f3742", "line": "#8b949e",
        "blue": "#79c0ff", "blue-box": "#0c2d4f", "orange": "#ffa657", "orange-box": "#3d2204", "green": "#7ee787", "green-box": "#0b3318",
        "violet": "#d2a8ff", "violet-box": "#2d1a4a",
    },
}
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif"


class Picture:
    """A picture of fixed width. Colours are named as in THEMES."""

    def __init__(self, theme, width, height, title, description):
        self.colours, self.width, self.height = THEMES[theme], width, height
        self.title, self.description, self.parts = title, description, []

    def colour(self, name):
        return self.colours.get(name, name)

    def add(self, element, text=None, **attributes):
        # A number has at most two decimals, so that the same data make the same bytes everywhere.
        show = lambda value: f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        written = "".join(
            f' {name.strip("_").replace("_", "-")}="{escape(show(value), {chr(34): "&quot;"})}"'
            for name, value in attributes.items() if value is not None)
        self.parts.append(f"<{element}{written}/>" if text is None else f"<{element}{written}>{escape(text)}</{element}>")

    def text(self, x, y, text, size=14, colour="text", anchor="start", bold=False, italic=False):
        self.add("text", text, x=x, y=y, font_size=size, fill=self.colour(colour), text_anchor=None if anchor == "start" else anchor,
                 font_weight="600" if bold else None, font_style="italic" if italic else None)

    def box(self, x, y, width, height, fill="box", stroke="line", radius=8, dashed=False, thickness=1.25):
        self.add("rect", x=x, y=y, width=width, height=height, rx=radius, fill=self.colour(fill), stroke=self.colour(stroke),
                 stroke_width=thickness if stroke != "none" else None, stroke_dasharray="5 4" if dashed else None)

    def line(self, x1, y1, x2, y2, colour="line", thickness=1.25, dashed=False):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=self.colour(colour), stroke_width=thickness,
                 stroke_dasharray="5 4" if dashed else None)

    def arrow(self, points, colour="line", thickness=1.5, dashed=False, both=False):
        """A line through points, with a head at its end, or at both ends."""
        length = 8.0
        path = [tuple(map(float, point)) for point in points]
        heads = [(path[-2], path[-1])] + ([(path[1], path[0])] if both else [])
        for before, tip in heads:
            away = ((before[0] - tip[0]), (before[1] - tip[1]))
            size = (away[0] ** 2 + away[1] ** 2) ** 0.5
            away = (away[0] / size, away[1] / size)
            foot = (tip[0] + away[0] * length, tip[1] + away[1] * length)
            side = (-away[1] * length * 0.5, away[0] * length * 0.5)
            corners = [tip, (foot[0] + side[0], foot[1] + side[1]), (foot[0] - side[0], foot[1] - side[1])]
            self.add("path", d="M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + " Z", fill=self.colour(colour))
            # The line ends inside of the head.
            end = (tip[0] + away[0] * length * 0.7, tip[1] + away[1] * length * 0.7)
            path[-1 if tip == path[-1] else 0] = end
        self.add("path", d="M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in path), fill="none", stroke=self.colour(colour),
                 stroke_width=thickness, stroke_linejoin="round", stroke_dasharray="5 4" if dashed else None)

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" role="img" aria-labelledby="title description" font-family="{FONT}">')
        return "\n".join([
            head, f'<title id="title">{escape(self.title)}</title>', f'<desc id="description">{escape(self.description)}</desc>',
            f'<rect width="{self.width}" height="{self.height}" rx="10" fill="{self.colour("page")}"/>', *self.parts, "</svg>", ""])


def write(name, draw, is_check):
    """Writes `name-light.svg` and `name-dark.svg`, or compares them with what is there. Returns the files that differ."""
    differing = []
    for theme in THEMES:
        path, text = folder / f"{name}-{theme}.svg", draw(theme)
        if is_check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                differing.append(path.name)
        else:
            path.write_text(text, encoding="utf-8")
    return differing


def end(program, differing, is_check):
    if differing:
        sys.exit(f"{program}: these differ from what 'make figures' makes; run it and commit them: {', '.join(differing)}")
    print(f"{program}: {'the pictures are as they should be' if is_check else f'written to {folder}'}")
