"""Trees, people and animals. Most of them draw on a `Pen`, so that a scene lays them down in one colour."""

import numpy as np


def conifer(pen, rng, x, base, height, width=None):
    """A spruce: a spire of whorls, each one wider, drooping and a little ragged."""
    width = width or height * rng.uniform(0.26, 0.34)
    tiers = 15 if height > 0.2 else 9
    for i in range(tiers):
        t = (i + 1) / tiers
        top, low = base - height * (1 - (t - 1.6 / tiers) * 0.95), base - height * (1 - t * 0.95)
        reach = width / 2 * t ** 0.9
        left, right = reach * rng.uniform(0.80, 1.15, 2)
        points = [(x, top)]
        for side, out in ((1, right), (-1, left)):
            fringe = [(x + side * out * k, low + height * 0.018 * (k * k * 1.3 - (j % 2) * 0.9)) for j, k in enumerate(np.linspace(1, 0.12, 6))]
            points += fringe if side > 0 else fringe[::-1]
        pen.polygon(points)
    pen.polygon([(x - width * 0.03, base - height * 0.9), (x, base - height * 1.05), (x + width * 0.03, base - height * 0.9)])
    pen.box(x - width * 0.05, base - height * 0.1, x + width * 0.05, base + height * 0.02)


def conifers(c, base, count, height, colour, x0=0.0, x1=None, soft=0.0):
    """A row of conifers standing on the line `base` (a function of x)."""
    x1 = c.aspect if x1 is None else x1
    xs = np.sort(c.rng.uniform(x0, x1, count))
    sizes = height * c.rng.uniform(0.55, 1.1, count)

    def draw(pen):
        for x, size in zip(xs, sizes):
            conifer(pen, c.rng, x, base(x), size)
    c.blend(c.mask(draw, soft), colour)


def foliage(pen, rng, x, y, rx, ry, leaves=90, size=0.16):
    """A crown of leaves: many small ovals within a large one."""
    for _ in range(leaves):
        angle, reach = rng.uniform(0, 2 * np.pi), rng.random() ** 0.5
        pen.oval(x + np.cos(angle) * rx * reach, y + np.sin(angle) * ry * reach, rx * size * rng.uniform(0.6, 1.3),
                 ry * size * rng.uniform(0.6, 1.3))


def branch(pen, rng, x, y, angle, length, width, depth, spread=0.6, shrink=0.74, bend=0.25, tips=None):
    """A branch and those that grow from it; `angle` 0 points up. Collects the ends of twigs in `tips`."""
    points, heading = [(x, y)], angle
    for _ in range(4):
        heading += rng.normal(0, bend) * 0.5
        x, y = x + np.sin(heading) * length / 4, y - np.cos(heading) * length / 4
        points.append((x, y))
    for i in range(4):
        pen.line(points[i:i + 2], width * (1 - 0.09 * i))
    pen.oval(x, y, width * 0.32)
    if depth == 0:
        if tips is not None:
            tips.append((x, y))
        return
    for side in ((-1, 1) if rng.random() < 0.75 else (-1, 0.1, 1)):
        branch(pen, rng, x, y, heading + side * spread * rng.uniform(0.5, 1.2), length * shrink * rng.uniform(0.75, 1.15),
               width * 0.66, depth - 1, spread, shrink, bend, tips)


def acacia(pen, rng, x, base, height, width=None):
    """A flat-topped tree of the savanna."""
    width = width or height * 1.5
    fork = base - height * 0.35
    pen.polygon([(x - height * 0.045, base), (x + height * 0.045, base), (x + height * 0.045, fork), (x - height * 0.005, fork)])
    for t in (-0.42, -0.2, 0.05, 0.24, 0.44):
        top = base - height * rng.uniform(0.80, 0.92)
        elbow = (x + t * width * rng.uniform(0.35, 0.5), (fork + top) / 2 + height * 0.02)
        pen.line([(x + height * 0.02, fork), elbow], height * 0.030)
        pen.line([elbow, (x + t * width, top)], height * 0.020)
        pen.line([elbow, (x + t * width * 0.55, top)], height * 0.014)
    for t in np.linspace(-0.46, 0.46, 13):
        y = base - height * (0.95 - 0.45 * t * t + rng.uniform(-0.04, 0.03))
        foliage(pen, rng, x + t * width, y, width * rng.uniform(0.07, 0.12), height * rng.uniform(0.025, 0.045), 90, 0.13)


def baobab(pen, rng, x, base, height, girth=0.13):
    """A Grandidier's baobab: a column of a trunk and a small crown on spread branches."""
    top, half = base - height * 0.80, height * girth / 2
    pen.polygon([(x - half * 1.5, base), (x - half * 1.08, base - height * 0.10), (x - half, base - height * 0.5), (x - half * 0.80, top),
                 (x + half * 0.80, top), (x + half, base - height * 0.5), (x + half * 1.08, base - height * 0.10), (x + half * 1.5, base)])
    for angle in (-1.25, -0.85, -0.4, 0.05, 0.45, 0.9, 1.25):
        tips = []
        branch(pen, rng, x + np.sin(angle) * half * 0.6, top + height * 0.01, angle, height * rng.uniform(0.11, 0.15), half * 0.42, 2,
               0.55, 0.66, 0.2, tips)
        for tx, ty in tips:
            foliage(pen, rng, tx, ty - height * 0.006, height * 0.036, height * 0.020, 16, 0.42)


def palm(pen, rng, x, base, height, lean=0.25):
    """A coconut palm leaning over."""
    ts = np.linspace(0, 1, 14)
    trunk = [(x + lean * height * t ** 1.8, base - height * t) for t in ts]
    for i in range(len(trunk) - 1):
        pen.line(trunk[i:i + 2], height * (0.042 - 0.018 * ts[i]))
    hx, hy = trunk[-1]
    for angle in np.linspace(-2.2, 2.1, 12):
        angle += rng.uniform(-0.12, 0.12)
        length, droop = height * rng.uniform(0.36, 0.48), rng.uniform(0.45, 0.85)
        ts = np.linspace(0, 1, 34)
        spine = [(hx + np.sin(angle) * length * t, hy - np.cos(angle) * length * t * 0.7 + droop * length * t ** 2.2) for t in ts]
        pen.line(spine, height * 0.008)
        for i in range(2, len(spine)):
            (px, py), (sx, sy) = spine[i - 1], spine[i]
            dx, dy = sx - px, sy - py
            norm = np.hypot(dx, dy) or 1
            dx, dy = dx / norm, dy / norm
            reach = length * 0.22 * np.sin(np.pi * min(1, 0.15 + 0.85 * ts[i])) ** 0.6 * rng.uniform(0.85, 1.1)
            root = length * 0.014
            for side in (-1, 1):
                end = (sx + (dx * 0.75 - side * dy * 0.55) * reach, sy + (dy * 0.75 + side * dx * 0.55) * reach + reach * 0.45)
                pen.polygon([(sx - dx * root, sy - dy * root), (sx + dx * root, sy + dy * root), end])
    for dx, dy in ((-0.016, 0.02), (0.018, 0.022), (0.0, 0.034)):
        pen.oval(hx + dx * height, hy + dy * height, height * 0.018)


def cypress(pen, rng, x, base, height):
    half = height * 0.10
    edge = []
    for t in np.linspace(0, 1, 24):
        edge.append((t, half * np.sin(np.pi * min(1, 0.16 + 0.84 * t)) ** 0.75 * rng.uniform(0.88, 1.08)))
    pen.polygon([(x + r, base - height * t) for t, r in edge] + [(x, base - height * 1.03)] + [(x - r, base - height * t) for t, r in edge[::-1]])


def fern(pen, rng, x, base, size):
    for angle in np.linspace(-1.25, 1.25, 7):
        angle += rng.uniform(-0.1, 0.1)
        previous = (x, base)
        for i, t in enumerate(np.linspace(0.1, 1, 12)):
            at = (x + np.sin(angle) * size * t, base - np.cos(angle) * size * t * 0.9 + size * 0.4 * t ** 2.5)
            pen.line([previous, at], size * 0.014)
            leaf = size * 0.20 * (1 - t) + size * 0.02
            for side in (-1, 1):
                tip = (at[0] + np.cos(angle) * side * leaf + np.sin(angle) * leaf * 0.4, at[1] + np.sin(angle) * side * leaf * 0.6 + leaf * 0.1)
                pen.polygon([previous, at, tip])
            previous = at


def person(pen, x, base, height, arms=0.0, stride=0.055):
    """A standing figure in a coat; `arms` 0 hangs down, 1 stretches up."""
    h = height
    pen.oval(x, base - h * 0.925, h * 0.062, h * 0.075)
    pen.polygon([(x - h * 0.045, base - h * 0.88), (x + h * 0.045, base - h * 0.88), (x + h * 0.135, base - h * 0.80), (x + h * 0.125, base - h * 0.40),
                 (x - h * 0.125, base - h * 0.40), (x - h * 0.135, base - h * 0.80)])
    for side in (-1, 1):
        pen.polygon([(x + side * h * 0.005, base - h * 0.45), (x + side * h * 0.12, base - h * 0.45), (x + side * h * (0.05 + stride), base), (x + side * h * stride * 0.55, base)])
        if arms:
            pen.line([(x + side * h * 0.11, base - h * 0.79), (x + side * h * (0.14 + 0.18 * arms), base - h * (0.45 + 0.62 * arms))], h * 0.055)


def elephant(pen, x, base, size, facing=1):
    """An elephant from the side, `size` high at the shoulder."""
    def at(dx, dy):
        return x + dx * size * facing, base - dy * size
    pen.oval(*at(0, 0.66), size * 0.62, size * 0.34)
    pen.oval(*at(0.60, 0.78), size * 0.25, size * 0.25)
    pen.oval(*at(0.46, 0.74), size * 0.17, size * 0.27)
    for dx in (-0.46, -0.24, 0.22, 0.42):
        pen.polygon([at(dx - 0.10, 0.55), at(dx + 0.10, 0.55), at(dx + 0.085, 0), at(dx - 0.085, 0)])
    pen.line([at(0.78, 0.72), at(0.88, 0.50), at(0.87, 0.22), at(0.92, 0.10)], size * 0.085)
    pen.line([at(0.74, 0.60), at(0.92, 0.48), at(1.02, 0.52)], size * 0.035)
    pen.line([at(-0.60, 0.74), at(-0.68, 0.40)], size * 0.025)


def penguin(pen, x, base, size):
    pen.oval(x, base - size * 0.42, size * 0.19, size * 0.40)
    pen.oval(x + size * 0.03, base - size * 0.86, size * 0.115, size * 0.125)
    pen.polygon([(x + size * 0.10, base - size * 0.90), (x + size * 0.24, base - size * 0.85), (x + size * 0.10, base - size * 0.82)])
    pen.polygon([(x - size * 0.12, base - size * 0.66), (x - size * 0.30, base - size * 0.28), (x - size * 0.16, base - size * 0.34)])
    pen.polygon([(x + size * 0.12, base - size * 0.66), (x + size * 0.28, base - size * 0.30), (x + size * 0.16, base - size * 0.34)])
    pen.box(x - size * 0.14, base - size * 0.04, x + size * 0.16, base)


def bird(pen, x, y, span):
    pen.line([(x - span / 2, y - span * 0.10), (x - span * 0.2, y - span * 0.16), (x, y), (x + span * 0.2, y - span * 0.16), (x + span / 2, y - span * 0.08)], span * 0.06)
