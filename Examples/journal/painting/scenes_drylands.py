"""Deserts, salt, red rock and savanna."""

import numpy as np

from . import built, land, life, sky
from .canvas import mix, ramp, smooth
from .scene import PORTRAIT, scene


@scene("deadvlei", grain=0)
def deadvlei(c):
    c.gradient((0, "#1f5fae"), (0.35, "#6fa9da"), (0.55, "#bcd9ea"), (1, "#bcd9ea"))
    far = land.peaks(c, 0.60, [(0.05, 0.36, 0.55), (0.72, 0.40, 0.6)], rough=0.004, cells=6, octaves=3, sharp=False)
    land.dune(c, far, "#e8894a", "#a34c2c", -1, 0.6, 0.06)
    big = land.peaks(c, 0.62, [(1.05, 0.115, 0.90)], rough=0.003, cells=5, octaves=3, sharp=False, curve=1.15)
    land.dune(c, big, "#f08f43", "#8a3620", -1, -0.55, 0.14)
    low = land.peaks(c, 0.62, [(0.30, 0.46, 0.60)], rough=0.004, cells=5, octaves=3, sharp=False, curve=1.3)
    land.dune(c, low, "#d9713a", "#7a2f22", -1, 0.5, 0.08)
    pan = 0.605 + 0.003 * c.line_noise(10, 4, sharp=False)
    land.flat(c, pan, "#f3ddc2", "#d9b894", 0.40)
    gap, tone = land.crackle(c, 0.585, 11, 3.0)
    c.blend(c.below(pan) * smooth(0.10, 0.02, gap) * smooth(0.60, 0.80, c.y) * 0.55, "#a87f5f")
    c.blend(c.below(pan) * smooth(0.60, 0.75, c.y) * (tone - 0.5) * 0.35, "#fff1dc")
    trees = ((0.36, 0.815, 0.115, 0.030, 7), (1.18, 0.745, 0.075, 0.019, 12), (0.80, 0.690, 0.045, 0.012, 3), (0.62, 0.650, 0.025, 0.006, 5), (1.38, 0.668, 0.032, 0.008, 9), (0.12, 0.672, 0.036, 0.010, 4), (0.98, 0.640, 0.018, 0.005, 8))
    for x, y, size, width, seed in sorted(trees, key=lambda tree: tree[1]):
        def wood(pen, width=width, size=size, x=x, y=y, seed=seed):
            rng = np.random.default_rng(seed)
            for angle in (-0.28, 0.25):
                life.branch(pen, rng, x, y, angle, size, width, 4, 0.62, 0.78, 0.55)
            pen.polygon([(x - width * 1.5, y + width * 0.3), (x + width * 1.5, y + width * 0.3), (x + width * 0.5, y - size * 0.5), (x - width * 0.5, y - size * 0.5)])
        tree = c.mask(wood)
        rows = np.clip((y + (c.y - y) * -3.2) * (c.h - 1), 0, c.h - 1)
        columns = np.clip((c.x - (c.y - y) * 3.0) / c.aspect * (c.w - 1), 0, c.w - 1)
        shadow = tree[rows.astype(int), columns.astype(int)] * (c.y > y)
        c.blend(shadow * 0.62, "#7f6450")
        c.blend(tree, "#2a1712")
        c.blend(np.clip(tree - np.roll(tree, 4, 1), 0, 1) * 0.8, "#9a5c3c")


@scene("uyuni")
def uyuni(c):
    c.gradient((0, "#27306e"), (0.16, "#6a4f98"), (0.31, "#e0718c"), (0.42, "#ffa765"), (0.50, "#ffe29a"), (1, "#ffe29a"))
    horizon = 0.515
    sky.clouds(c, "#ffb08a", "#69508e", -0.05, 0.40, cover=0.60, cells=5, stretch=3.0, opacity=0.9, light=(4, 7))
    sky.clouds(c, "#ffd9a0", "#c86f86", 0.28, 0.50, cover=0.46, cells=9, stretch=7, opacity=0.8, light=(3, 5))
    sky.sun(c, 0.98, 0.485, 0.022, "#fffbe4", "#ffb85c", 0.40, 0.9)
    hills = horizon - 0.004 - 0.030 * np.clip(land.ridge(c, 0, 1, 4, 6) * -1 * np.exp(-((c.x[0] - 0.15) / 0.35) ** 2), 0, 1) - 0.014 * np.exp(-((c.x[0] - 1.42) / 0.12) ** 2)
    c.blend(c.below(hills.astype(np.float32)) * (c.y < horizon), "#5a4080")

    def party(pen):
        for x, height, arms in ((0.52, 0.070, 1.0), (0.575, 0.066, 0.0), (0.605, 0.072, 0.55), (0.655, 0.050, 1.0)):
            life.person(pen, x, horizon + 0.012, height, arms)
        x, y, s = 0.80, horizon + 0.012, 0.085
        pen.polygon([(x - s * 0.95, y - s * 0.18), (x - s * 0.95, y - s * 0.52), (x - s * 0.80, y - s * 0.92), (x + s * 0.30, y - s * 0.92), (x + s * 0.55, y - s * 0.55), (x + s * 0.98, y - s * 0.48), (x + s * 1.0, y - s * 0.18)])
        pen.oval(x - s * 0.55, y - s * 0.17, s * 0.19)
        pen.oval(x + s * 0.62, y - s * 0.17, s * 0.19)
        pen.box(x - s * 0.75, y - s * 1.05, x + s * 0.20, y - s * 0.95)
    land.water(c, horizon, "#5a5a9a", "#ffd9a0", mirror=0.96, ripple=0.004, near_mirror=0.86, shadow=0.03)
    gap, tone = land.crackle(c, horizon, 5.0, 2.0)
    c.blend((c.y > horizon + 0.01) * smooth(0.040, 0.008, gap) * smooth(0.56, 0.85, c.y) * 0.30, "#ffe9d8")
    figures = c.mask(party)
    c.blend(figures, "#1c1430")
    foot = horizon + 0.012
    rows = np.clip((2 * foot - c.y) * (c.h - 1), 0, c.h - 1).astype(int)
    c.blend(figures[rows[:, 0]] * (c.y > foot) * 0.82, "#2a1c40")
    def glass(pen):
        x, y, s = 0.80, foot, 0.085
        pen.polygon([(x - s * 0.72, y - s * 0.55), (x - s * 0.66, y - s * 0.84), (x - s * 0.25, y - s * 0.84), (x - s * 0.25, y - s * 0.55)])
        pen.polygon([(x - s * 0.16, y - s * 0.55), (x - s * 0.16, y - s * 0.84), (x + s * 0.24, y - s * 0.84), (x + s * 0.42, y - s * 0.55)])
    c.blend(c.mask(glass), "#ffb37a")


@scene("uluru")
def uluru(c):
    c.gradient((0, "#4a5fa8"), (0.24, "#a48cc4"), (0.40, "#f0a9a8"), (0.50, "#d99ab4"), (0.60, "#8f8cb8"), (1, "#8f8cb8"))
    sky.clouds(c, "#ffb7a0", "#8a7ab0", 0.02, 0.30, cover=0.40, cells=4, stretch=6, opacity=0.75)
    far = land.ridge(c, 0.598, 0.004, 6, 4, sharp=False)
    land.flat(c, far, "#6a5a80")
    shape_x = np.array([0.13, 0.17, 0.21, 0.27, 0.36, 0.50, 0.66, 0.82, 0.96, 1.08, 1.19, 1.28, 1.33, 1.37])
    shape_y = np.array([0.61, 0.545, 0.475, 0.425, 0.385, 0.355, 0.345, 0.350, 0.365, 0.385, 0.430, 0.495, 0.56, 0.61])
    top = np.interp(c.x[0], shape_x, shape_y, left=1.2, right=1.2)
    top = (top - 0.006 * c.line_noise(40, 4) - 0.005 * c.line_noise(12, 3)).astype(np.float32)
    body = c.below(top) * (c.y < 0.612)
    centre = np.clip((c.x - 0.75) / 0.65, -1, 1)
    leaning = c.x + centre * (c.y - 0.35) * -0.25
    groove = c.line_noise(54, 4, 0.6, sharp=False) * 0.5 + 0.5
    flute = groove[np.clip(leaning / c.aspect * (c.w - 1), 0, c.w - 1).astype(int)]
    rock = c.noise(30, 5, 0.6)
    depth = np.clip((c.y - top[None, :]) / 0.25, 0, 1)
    light = np.clip(0.25 + 0.75 * flute * smooth(0.0, 0.12, depth) + 0.55 * smooth(0.16, 0.0, depth) + (rock - 0.5) * 0.5, 0, 1)
    c.blend(body, ramp(light, (0, "#5a1f26"), (0.35, "#a83a24"), (0.70, "#e2642c"), (1, "#ff9a50")))
    strata = np.sin((c.y + 0.10 * (c.x - 0.7) + 0.02 * c.noise(5, 4)) * 190)
    c.darken(body * smooth(0.4, 1.0, strata) * smooth(0.1, 0.5, depth), 0.05)
    for x, y, rx, ry in ((0.46, 0.52, 0.018, 0.030), (0.60, 0.545, 0.035, 0.022), (0.87, 0.53, 0.022, 0.034), (1.05, 0.55, 0.030, 0.020), (0.72, 0.47, 0.012, 0.022)):
        cave = smooth(1.15, 0.8, np.sqrt(((c.x - x) / rx) ** 2 + ((c.y - y) / ry) ** 2) + (rock - 0.5) * 0.6)
        c.blend(cave * body * 0.75, "#481820")
    c.blend(body * smooth(0.57, 0.615, c.y) * 0.45, "#5a2a3a")
    plain = 0.606 + 0.003 * c.line_noise(20, 4)
    land.flat(c, plain, "#c0784a", "#a8502c", 0.40)
    patch = land.perspective_noise(c, 0.59, 0.9, 26)
    c.blend(c.below(plain) * smooth(0.42, 0.62, patch) * 0.8, mix("#6f6f3c", "#c2a860", c.noise(60, 3)))
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, 0.612 + c.rng.uniform(0, 0.012), c.rng.uniform(0.010, 0.026), 0.009, 20) for x in np.linspace(0, 1.5, 46)]), "#4a5238")

    def oak(pen, x, y, h):
        pen.line([(x, y), (x + h * 0.03, y - h * 0.5)], h * 0.035)
        for _ in range(26):
            rise = c.rng.uniform(0.42, 1.0)
            life.foliage(pen, c.rng, x + c.rng.normal(0, h * 0.15 * (1.25 - rise)), y - h * rise, h * 0.07, h * 0.10, 22, 0.20)
    for x, y, h in ((0.10, 0.70, 0.17), (1.34, 0.73, 0.22), (1.44, 0.69, 0.15), (0.32, 0.665, 0.09), (1.12, 0.658, 0.08), (0.02, 0.68, 0.12)):
        c.blend(c.mask(lambda pen: oak(pen, x, y, h)), "#2c3328")
    for number in range(210):
        t = np.sqrt((number + 0.5) / 210)
        x, y, size = c.rng.uniform(-0.02, 1.52), 0.66 + 0.36 * t, 0.010 + 0.045 * t

        def tuft(pen):
            for angle in np.linspace(-1.3, 1.3, 26):
                angle += c.rng.normal(0, 0.1)
                pen.line([(x, y), (x + np.sin(angle) * size, y - np.cos(angle) * size * 0.8)], 0.0009 + 0.0012 * t)
        if number % 3 == 0:
            low = c.mask(lambda pen: pen.oval(x + size * 0.2, y, size * 0.95, size * 0.16))
            c.blend(low * 0.5, "#5a2a26")
            c.blend(c.mask(tuft), ("#d9c07a", "#b59a54", "#e8cf90")[number // 3 % 3])


@scene("wadi-rum")
def wadi_rum(c):
    c.gradient((0, "#060a1c"), (0.45, "#141f42"), (0.66, "#34406a"), (1, "#34406a"))
    sky.stars(c, 1700, 0.72, 1.0)
    sky.milky_way(c, (1.30, 0.66), (0.38, -0.10), 0.105, 0.95)
    sky.glow(c, 1.45, 0.70, 0.45, "#6f6a8c", 0.45)
    for y, tint, lit, summits in ((0.66, "#1c2140", "#4a4560", [(0.45, 0.55, 0.16), (0.62, 0.52, 0.16), (0.95, 0.57, 0.16), (0.80, 0.55, 0.1)]),
                                  (0.70, "#12142c", "#5a4450", [(0.02, 0.30, 0.30), (0.20, 0.34, 0.18), (0.30, 0.50, 0.12), (1.28, 0.44, 0.20), (1.42, 0.36, 0.24)])):
        line = land.peaks(c, y, summits, rough=0.016, cells=20, curve=0.32)
        light = land.facets(c, line, 1, spread=0.3, detail=1.2, ribs=60)
        c.blend(c.below(line), mix(tint, lit, light * smooth(0.30, y, c.y)))
    sand = 0.695 + 0.006 * c.line_noise(3, 4, sharp=False)
    land.flat(c, sand, "#4a3a4c", "#6a4638", 0.30)
    ripples = land.perspective_noise(c, 0.67, 1.1, 30)
    c.blend(c.below(sand) * smooth(0.45, 0.75, ripples) * 0.45, "#1d1a2c")
    camp = ((0.20, 0.735, 0.085), (0.33, 0.742, 0.10), (0.47, 0.735, 0.085))
    sky.glow(c, 0.34, 0.745, 0.30, "#ff9a40", 0.55, squash=2.2)
    for x, y, w in camp:
        c.shape([(x - w * 0.62, y), (x - w * 0.45, y - w * 0.40), (x, y - w * 0.62), (x + w * 0.45, y - w * 0.40), (x + w * 0.62, y)], "#1a1216")
        c.shape([(x - w * 0.34, y), (x - w * 0.30, y - w * 0.36), (x + w * 0.30, y - w * 0.36), (x + w * 0.34, y)], "#ffb050")
        for dx in (-0.12, 0.10):
            c.shape([(x + (dx - 0.03) * w, y), (x + (dx - 0.03) * w, y - w * 0.36), (x + (dx + 0.03) * w, y - w * 0.36), (x + (dx + 0.03) * w, y)], "#5a2a18")
        sky.glow(c, x, y - w * 0.16, w * 0.65, "#ff8a2a", 0.55)
    fire = (0.62, 0.770)
    sky.glow(c, *fire, 0.17, "#ff7a1e", 0.75, squash=1.6)
    c.shape([(0.607, 0.772), (0.611, 0.752), (0.617, 0.760), (0.621, 0.738), (0.627, 0.757), (0.632, 0.750), (0.634, 0.772)], "#fff0b0", 0.001)
    c.blend(c.mask(lambda pen: (life.person(pen, 0.560, 0.778, 0.055), life.person(pen, 0.675, 0.776, 0.055), life.person(pen, 0.700, 0.782, 0.058))), "#120c12")

    def camel(pen, x, y, s):
        pen.oval(x, y - s * 0.55, s * 0.36, s * 0.15)
        pen.polygon([(x - s * 0.16, y - s * 0.62), (x - s * 0.02, y - s * 0.88), (x + s * 0.14, y - s * 0.62)])
        pen.line([(x + s * 0.30, y - s * 0.52), (x + s * 0.46, y - s * 0.50), (x + s * 0.53, y - s * 0.86)], s * 0.09)
        pen.oval(x + s * 0.59, y - s * 0.87, s * 0.11, s * 0.055)
        for dx in (-0.28, -0.18, 0.18, 0.28):
            pen.line([(x + s * dx, y - s * 0.5), (x + s * dx * 1.05, y)], s * 0.05)
    c.blend(c.mask(lambda pen: (camel(pen, 0.90, 0.790, 0.095), camel(pen, 1.03, 0.800, 0.100), camel(pen, 1.15, 0.785, 0.090))), "#100c16")
    c.blend(c.mask(lambda pen: pen.polygon([(0, 1.0), (0, 0.87), (0.16, 0.86), (0.30, 0.90), (0.42, 0.97), (0.46, 1.0)]), 0.001), "#0c0a14")


@scene("goreme")
def goreme(c):
    c.gradient((0, "#6f9ad0"), (0.25, "#c3bfd8"), (0.45, "#ffc8a0"), (0.60, "#ffe3b4"), (1, "#ffe3b4"))
    sky.sun(c, 1.12, 0.555, 0.026, "#fffbe6", "#ffc46a", 0.42, 0.85)
    far = land.ridge(c, 0.575, 0.020, 3, 6)
    land.range_of(c, far, "#d9a48c", "#b58c98", 1, haze="#ffdcb4", haze_depth=0.08, haze_amount=0.7)
    table = land.peaks(c, 0.62, [(0.18, 0.53, 0.34), (0.42, 0.545, 0.25)], rough=0.008, cells=24, curve=0.4)
    land.range_of(c, table, "#d8a078", "#9a7684", 1, haze="#ffd9b0", haze_depth=0.10, haze_amount=0.5)
    for base, count, low, high, lit, dark, warm in ((0.68, 22, 0.05, 0.12, "#e6b48a", "#a9828a", 0.45), (0.78, 13, 0.10, 0.19, "#e8ae7c", "#8a6472", 0.25), (0.92, 8, 0.15, 0.30, "#e0a070", "#5f4452", 0.0)):
        ground = base - 0.03 + 0.012 * c.line_noise(5, 4, sharp=False)
        land.flat(c, ground, tuple(mix(lit, dark, np.float32(0.35))), tuple(mix(lit, dark, np.float32(0.75))), 0.14)
        xs = np.linspace(-0.02, 1.52, count) + c.rng.uniform(-0.05, 0.05, count)
        for x in xs:
            if base > 0.9 and 0.55 < x < 0.98:
                continue
            height = c.rng.uniform(low, high)
            half = height * c.rng.uniform(0.26, 0.36)
            foot = base + c.rng.uniform(-0.012, 0.02)
            ts = np.linspace(0, 1, 16)
            wide = half * (0.16 + 0.84 * ts ** 1.25) * (1 + 0.05 * np.sin(ts * 12 + x * 40))
            ys = foot - height * (1 - ts)
            cone = c.mask(lambda pen: pen.polygon(list(zip(x - wide, ys)) + list(zip(x + wide, ys))[::-1]))
            side = (c.x - x) / half
            beds = np.sin(c.y * 210 + x * 31)
            c.blend(cone, mix(dark, lit, np.clip(0.48 + 0.75 * side + 0.08 * beds + (c.noise(40, 3, 0.3) - 0.5) * 0.45, 0, 1)))
            if c.rng.random() < 0.65:
                cap = c.mask(lambda pen: pen.polygon([(x - half * 0.34, ys[0] + height * 0.05), (x - half * 0.22, ys[0] - height * 0.10), (x + half * 0.04, ys[0] - height * 0.17), (x + half * 0.26, ys[0] - height * 0.08), (x + half * 0.36, ys[0] + height * 0.05)]))
                c.blend(cap, mix("#3c2a30", "#8a6454", np.clip(0.5 + side * 1.6, 0, 1)))
            if height > 0.10:
                def windows(pen):
                    for _ in range(int(c.rng.integers(1, 5))):
                        wy = foot - height * c.rng.uniform(0.12, 0.55)
                        wx, r = x + c.rng.uniform(-0.35, 0.35) * half, height * 0.026
                        pen.oval(wx, wy - r, r * 0.75, r)
                        pen.box(wx - r * 0.75, wy - r, wx + r * 0.75, wy + r * 1.2)
                c.blend(c.mask(windows), "#33202a")
        sky.mist(c, base - 0.02, 0.03, "#ffdcb0", warm, patchy=0.3)
    front = 0.955 - 0.02 * c.line_noise(4, 4, sharp=False)
    land.flat(c, front, "#4a3a3c", "#2a2028", 0.1)
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, 0.965, 0.028, 0.018, 26) for x in np.linspace(0, 1.5, 26)]), "#3a3c34")
    sets = (("#d8362a", "#f6d35c", "#f3efe2"), ("#2f6fb4", "#f3efe2"), ("#e87a24", "#7a2a5a", "#f7c23c"), ("#3a8f6a", "#f3e2a0"), ("#b03a6a", "#f7d9d0"), ("#f2b632", "#c2412c"), ("#5a4a9a", "#d9d2f0"))
    spots = ((0.36, 0.250, 0.235), (1.20, 0.20, 0.165), (0.80, 0.145, 0.125), (0.645, 0.385, 0.090), (0.98, 0.365, 0.075), (0.10, 0.13, 0.085), (1.40, 0.395, 0.085), (0.13, 0.43, 0.065),
             (0.55, 0.085, 0.055), (1.03, 0.085, 0.050), (0.77, 0.475, 0.040), (1.28, 0.465, 0.036), (0.46, 0.485, 0.034))
    for i, (x, y, size) in sorted(enumerate(spots), key=lambda spot: spot[1][2]):
        before = c.px.copy()
        built.balloon(c, x, y, size, sets[i % 7], light=1)
        c.px[:] = before + (c.px - before) * min(1.0, 0.62 + size * 4)


@scene("baobabs", PORTRAIT)
def baobabs(c):
    c.gradient((0, "#5a5f9c"), (0.25, "#c98a9c"), (0.48, "#ff9f5c"), (0.66, "#ffd27a"), (1, "#ffd27a"))
    sky.clouds(c, "#ffc890", "#9a6f96", 0.02, 0.40, cover=0.45, cells=4, stretch=5, opacity=0.75, light=(2, 7))
    sky.sun(c, 0.345, 0.655, 0.050, "#fff6cc", "#ff9a3c", 0.42, 0.9)
    horizon = 0.735
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, 0.730, 0.03, 0.014, 30) for x in np.linspace(0, c.aspect, 24)]), "#b0603a")
    ground = horizon + 0.003 * c.line_noise(12, 3)
    land.flat(c, ground, "#c9703a", "#7a3420", 0.28)
    road = np.abs(c.x - 0.345 - 0.02 * np.sin((c.y - horizon) * 9)) - (0.010 + 0.85 * np.clip(c.y - horizon, 0, 1) ** 1.05)
    earth = land.perspective_noise(c, horizon - 0.02, 1.0, 30)
    c.blend(c.below(ground) * smooth(0.01, -0.01, road + (c.noise(24, 4) - 0.5) * 0.02), mix("#a84c24", "#f0a050", np.clip(earth * 1.3 - 0.1, 0, 1)))
    c.blend(c.below(ground) * smooth(0.0, 0.03, road) * smooth(0.45, 0.7, earth) * 0.75, "#5a3a1c")
    for side in (-0.35, 0.35):
        rut = np.abs(c.x - 0.345 - 0.02 * np.sin((c.y - horizon) * 9) - side * 0.9 * np.clip(c.y - horizon, 0, 1)) - 0.05 * np.clip(c.y - horizon, 0, 1)
        c.blend(c.below(ground) * smooth(0.008, -0.008, rut) * 0.35, "#6a2a18")
    rows = ((0.300, 0.742, 0.15, "#c2704a"), (0.392, 0.743, 0.16, "#c2704a"), (0.252, 0.755, 0.26, "#a3553c"), (0.450, 0.758, 0.28, "#a3553c"), (0.165, 0.785, 0.45, "#74382c"), (0.545, 0.790, 0.48, "#74382c"),
            (0.035, 0.855, 0.80, "#3c1c1c"), (0.655, 0.860, 0.78, "#3c1c1c"))
    for x, base, height, tint in rows:
        reach = height * 0.6
        c.blend(c.mask(lambda pen: pen.polygon([(x - height * 0.07, base), (x + height * 0.07, base), (x + (x - 0.345) * reach * 2.0 + height * 0.08, base + reach * 0.42), (x + (x - 0.345) * reach * 2.0 - height * 0.08, base + reach * 0.42)]), 0.002) * 0.45 * (c.y > base), "#4a1c14")
        tree = c.mask(lambda pen: life.baobab(pen, c.rng, x, base, height))
        c.blend(tree, tint)
        toward = np.exp(-(np.abs(c.x - 0.345) / 0.30) ** 2)
        step = max(3, int(height * 26))
        rim = np.clip(tree - np.roll(tree, -step if x < 0.345 else step, 1), 0, 1)
        c.blend(rim * 0.85 * toward, "#ffb060")
        c.blend(tree * smooth(0.55, 0.75, c.noise(40, 3, 0.15)) * 0.30, "#1c0c10")

    c.add(np.exp(-((c.x - 0.345) / 0.06) ** 2) * smooth(0.95, horizon, c.y) * (c.y > horizon) * 0.35, "#ffc070")

    def cart(pen):
        x, y, s = 0.365, 0.800, 0.055
        pen.oval(x, y - s * 0.28, s * 0.28)
        pen.box(x - s * 0.55, y - s * 0.62, x + s * 0.55, y - s * 0.42)
        life.person(pen, x - s * 0.1, y - s * 0.45, s * 0.9)
        pen.oval(x - s * 1.05, y - s * 0.50, s * 0.40, s * 0.20)
        for dx in (-1.30, -1.12, -0.85, -0.75):
            pen.line([(x + dx * s, y - s * 0.4), (x + dx * s, y)], s * 0.07)
        pen.oval(x - s * 1.50, y - s * 0.62, s * 0.14, s * 0.11)
        pen.line([(x - s * 1.52, y - s * 0.70), (x - s * 1.60, y - s * 0.90)], s * 0.04)
        pen.line([(x - s * 0.6, y - s * 0.5), (x - s * 1.0, y - s * 0.55)], s * 0.05)
    c.blend(c.mask(cart), "#2c1214")
