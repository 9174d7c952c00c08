"""What people built: gates, houses, towers, bridges, boats, balloons, statues."""

import numpy as np

from .canvas import mix, smooth


def torii(c, x, base, height, colour, dark, shade=0.0):
    """A vermilion gate with a black cap, seen from the front."""
    half, post = height * 0.40, height * 0.060
    tint = tuple(mix(colour, "#120608", np.float32(shade)))
    black = tuple(mix(dark, "#120608", np.float32(shade)))

    def posts(pen):
        for side in (-1, 1):
            pen.polygon([(x + side * half - post, base), (x + side * half + post, base),
                         (x + side * half * 0.95 + post * 0.9, base - height * 0.9), (x + side * half * 0.95 - post * 0.9, base - height * 0.9)])
        pen.box(x - half * 1.18, base - height * 0.76, x + half * 1.18, base - height * 0.68)
        pen.polygon([(x - half * 1.40, base - height * 0.97), (x, base - height * 0.925), (x + half * 1.40, base - height * 0.97),
                     (x + half * 1.34, base - height * 0.88), (x - half * 1.34, base - height * 0.88)])
    c.blend(c.mask(posts), tint)
    for side in (-1, 1):
        edge = x + side * half
        c.shape([(edge - post * 0.2, base), (edge + post, base), (edge + post * 0.9 - side * half * 0.05, base - height * 0.88),
                 (edge - post * 0.1 - side * half * 0.05, base - height * 0.88)], tuple(np.array(tint) * 0.72))
        c.shape([(edge - post * 1.15, base), (edge + post * 1.15, base), (edge + post * 1.1, base - height * 0.09), (edge - post * 1.1, base - height * 0.09)], black)
    c.shape([(x - half * 1.46, base - height * 1.03), (x, base - height * 0.965), (x + half * 1.46, base - height * 1.03),
             (x + half * 1.40, base - height * 0.96), (x, base - height * 0.925), (x - half * 1.40, base - height * 0.96)], black)


def tower(c, x, base, width, height, body, lamps, lit=0.45, cell=0.008, edge="#000000", crown=0):
    """A tower block with lit windows; `crown` 1 steps it back at the top, 2 adds a spire."""
    top = base - height
    boxes = [(x - width / 2, base - height * (0.82 if crown else 1), x + width / 2, base)]
    if crown:
        boxes += [(x - width * 0.36, base - height * 0.92, x + width * 0.36, base), (x - width * 0.22, top, x + width * 0.22, base)]

    def walls(pen):
        for box in boxes:
            pen.box(*box)
        if crown == 2:
            pen.polygon([(x - width * 0.05, top), (x + width * 0.05, top), (x, top - height * 0.22)])
    mask = c.mask(walls)
    c.blend(mask, body)
    c.blend(mask * smooth(x + width * 0.1, x + width * 0.5, c.x) * 0.35, edge)

    def windows(pen):
        for y in np.arange(base - cell, top + cell, -cell * 1.25):
            row = c.rng.random() < 0.12
            for wx in np.arange(x - width / 2 + cell * 0.6, x + width / 2 - cell * 0.5, cell):
                if row or c.rng.random() < lit:
                    pen.box(wx, y - cell * 0.5, wx + cell * 0.5, y, int(c.rng.uniform(90, 255)))
    c.blend(c.mask(windows) * mask, lamps)


def house(c, x, base, width, height, wall, roof, window="#ffe9b0", trim="#ffffff", side=0.0):
    """A cabin with a pitched roof, its gable to the front, and a wall running off to one side."""
    eave, top = base - height * 0.58, base - height
    if side:
        c.shape([(x + width / 2, base), (x + width / 2 + side, base - abs(side) * 0.06), (x + width / 2 + side, eave - abs(side) * 0.03), (x + width / 2, eave)],
                tuple(mix(wall, "#101018", np.float32(0.35))))
        c.shape([(x + width * 0.55, eave + height * 0.03), (x + width * 0.55 + side, eave), (x + side * 1.0, top - abs(side) * 0.02), (x, top)], roof)
    c.shape([(x - width / 2, base), (x + width / 2, base), (x + width / 2, eave), (x, top), (x - width / 2, eave)], wall)
    for at in (-1, 1):
        c.shape([(x, top - height * 0.03), (x + at * width * 0.58, eave + height * 0.03), (x + at * width * 0.58, eave + height * 0.08), (x, top + height * 0.05)], trim)
    size = width * 0.13
    for dx, dy in ((-0.24, 0.30), (0.24, 0.30), (0.0, 0.66)):
        wx, wy = x + dx * width, base - height * dy
        c.shape([(wx - size * 0.75, wy + size * 0.9), (wx + size * 0.75, wy + size * 0.9), (wx + size * 0.75, wy - size * 0.9), (wx - size * 0.75, wy - size * 0.9)], trim)
        c.shape([(wx - size * 0.5, wy + size * 0.65), (wx + size * 0.5, wy + size * 0.65), (wx + size * 0.5, wy - size * 0.65), (wx - size * 0.5, wy - size * 0.65)], window)


def stilts(c, x, base, width, depth, colour, count=5):
    def draw(pen):
        for t in np.linspace(-0.5, 0.5, count):
            pen.box(x + t * width - width * 0.012, base, x + t * width + width * 0.012, base + depth)
        pen.box(x - width * 0.56, base - width * 0.01, x + width * 0.56, base + width * 0.025)
    c.blend(c.mask(draw), colour)


def balloon(c, x, y, size, colours, light=-1):
    """A hot-air balloon, `size` wide, with gores in alternating colours."""
    dx, dy = (c.x - x) / (size / 2), (c.y - y) / (size / 2)
    lower = np.clip(dy, 0, None)
    width = np.where(dy < 0, np.sqrt(np.clip(1 - dy ** 2, 0, 1)), np.sqrt(np.clip(1 - (lower / 1.35) ** 2, 0, 1)) * (1 - 0.22 * lower))
    width = np.where((dy > -1) & (dy < 1.22), width, 0)
    mask = np.clip((width - np.abs(dx)) * size * c.h / 2 + 0.5, 0, 1) * (width > 0)
    turn = np.arcsin(np.clip(dx / np.maximum(width, 1e-3), -1, 1)) / np.pi + 0.5
    gore = np.floor(turn * 10).astype(int) % len(colours)
    tint = np.array([mix(k, k, np.float32(0)) for k in colours])[gore]
    shade = np.clip(0.78 + 0.38 * light * dx - 0.12 * dy, 0.45, 1.12)
    band = (np.abs(dy - 0.18) < 0.09)[..., None] if len(colours) > 2 else False
    tint = np.where(band, mix(colours[-1], "#ffffff", np.float32(0.5)), tint)
    c.blend(mask, tint * shade[..., None])
    basket = size * 0.085

    def gear(pen):
        bottom = y + size * 0.60
        for side in (-1, 1):
            pen.line([(x + side * size * 0.17, bottom), (x + side * basket * 0.9, bottom + size * 0.19)], max(size * 0.012, 0.0012))
        pen.box(x - basket, bottom + size * 0.18, x + basket, bottom + size * 0.28)
    c.blend(c.mask(gear), "#3a2418")


def moai(pen, x, base, height, width=None):
    """One of the statues of Rapa Nui in silhouette, seen from the front: shoulders, long ears, a heavy brow, a flat crown."""
    w = width or height * 0.34
    half = [(0.46, 0), (0.52, 0.20), (0.50, 0.38), (0.40, 0.46), (0.20, 0.50), (0.20, 0.53), (0.27, 0.57), (0.29, 0.62), (0.35, 0.63), (0.36, 0.80),
            (0.31, 0.82), (0.32, 0.90), (0.28, 0.97), (0.16, 1.0)]
    pen.polygon([(x + dx * w, base - dy * height) for dx, dy in half] + [(x - dx * w, base - dy * height) for dx, dy in half[::-1]])


def dome(pen, x, base, radius, bulge=1.12, finial=True):
    """An onion dome on `base`."""
    points = []
    for t in np.linspace(0, 1, 30):
        angle = t * np.pi
        r = radius * (np.cos(angle / 2) ** 0.62) * (1 + (bulge - 1) * np.sin(np.pi * min(1, t * 2.2)) * (t < 0.46))
        points.append((r, base - radius * 1.62 * t ** 0.92))
    pen.polygon([(x + r, y) for r, y in points] + [(x - r, y) for r, y in points[::-1]])
    if finial:
        pen.line([(x, base - radius * 1.55), (x, base - radius * 1.95)], radius * 0.05)
        pen.oval(x, base - radius * 1.74, radius * 0.05)


def junk(c, x, base, size, hull="#3a2018", sail="#c9672f"):
    """A wooden junk under three battened sails."""
    c.shape([(x - size * 0.50, base - size * 0.14), (x + size * 0.46, base - size * 0.12), (x + size * 0.52, base - size * 0.20), (x + size * 0.36, base),
             (x - size * 0.40, base), (x - size * 0.56, base - size * 0.24)], hull)
    c.shape([(x - size * 0.30, base - size * 0.14), (x + size * 0.24, base - size * 0.13), (x + size * 0.24, base - size * 0.21), (x - size * 0.30, base - size * 0.22)], "#6b4028")
    for dx, height, width in ((-0.32, 0.52, 0.22), (0.0, 0.80, 0.32), (0.34, 0.56, 0.22)):
        mx, foot = x + dx * size, base - size * 0.20
        fan = [(mx - width * size * 0.35, foot)]
        for t in np.linspace(0, 1, 7):
            fan.append((mx + width * size * (0.62 + 0.10 * (int(t * 6) % 2) - 0.42 * t ** 2), foot - height * size * t))
        fan += [(mx - width * size * 0.10, foot - height * size * 1.04), (mx - width * size * 0.42, foot - height * size * 0.45)]
        c.shape(fan, sail)
        mask = c.mask(lambda pen: pen.polygon(fan))
        c.darken(mask * smooth(mx - width * size * 0.3, mx + width * size * 0.6, c.x), 0.35)

        def battens(pen):
            for t in np.linspace(0.14, 0.86, 5):
                pen.line([(mx - width * size * 0.44, foot - height * size * t * 0.94), (mx + width * size * 0.72, foot - height * size * t)], size * 0.006)
            pen.line([(mx, foot + size * 0.06), (mx, foot - height * size * 1.1)], size * 0.012)
        c.blend(c.mask(battens) * np.clip(mask + (np.abs(c.x - mx) < size * 0.008), 0, 1), hull)


def bridge_span(c, piers, deck, top, colour, cable=0.0022, left=None, right=None, stays=True):
    """A suspension bridge seen from the side: `piers` are the x of its two towers, `deck` and `top` heights."""
    x0, x1 = piers
    left = x0 - (x1 - x0) * 0.55 if left is None else left
    right = x1 + (x1 - x0) * 0.55 if right is None else right

    def sag(x):
        if x0 <= x <= x1:
            t = (x - (x0 + x1) / 2) / ((x1 - x0) / 2)
            return deck - 0.012 - (deck - 0.012 - top) * t * t
        t = (x0 - x) / (x0 - left) if x < x0 else (x - x1) / (right - x1)
        return top + (deck - top) * min(1, max(0, t)) ** 0.85

    def draw(pen):
        xs = np.linspace(left, right, 160)
        pen.line([(x, sag(x)) for x in xs], cable * 1.7)
        for x in np.arange(left, right, (x1 - x0) / 34):
            pen.line([(x, sag(x)), (x, deck)], cable * 0.5)
        if stays:
            for px in piers:
                for reach in np.linspace(0.06, 0.42, 9) * (x1 - x0):
                    for side in (-1, 1):
                        pen.line([(px, top + 0.012), (px + side * reach, deck)], cable * 0.45)
        pen.box(left - 0.6, deck, right + 0.6, deck + 0.014)
    c.blend(c.mask(draw), colour)


def prayer_flags(c, start, end, sag, count, size):
    """A line of flags in the five colours, always blue, white, red, green, yellow."""
    colours = ("#2f6fc4", "#f3f3ee", "#d8352f", "#2f9a57", "#f2c230")
    ts = np.linspace(0, 1, count + 1)
    points = [(start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t + sag * 4 * t * (1 - t)) for t in ts]
    c.blend(c.mask(lambda pen: pen.line(points, 0.0025)), "#2a2a30")
    for i, ((ax, ay), (bx, by)) in enumerate(zip(points, points[1:])):
        wave = c.rng.uniform(-0.3, 0.5) * size
        flag = [(ax + (bx - ax) * 0.08, ay), (bx - (bx - ax) * 0.08, by), (bx + wave * 0.5, by + size * c.rng.uniform(0.85, 1.1)), (ax + wave * 0.6, ay + size * c.rng.uniform(0.85, 1.1))]
        c.shape(flag, colours[i % 5])
        mask = c.mask(lambda pen: pen.polygon(flag))
        c.darken(mask * (0.5 + 0.5 * np.sin((c.x - ax) * 180 + i)), 0.25)
