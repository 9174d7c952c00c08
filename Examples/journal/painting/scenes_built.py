"""Places that people built: gates, cities, islands of white houses, a tomb, statues."""

import numpy as np

from . import built, land, life, sky
from .canvas import mix, ramp, smooth
from .scene import PORTRAIT, scene


@scene("fushimi-inari", PORTRAIT)
def fushimi_inari(c):
    c.gradient((0, "#1c2a18"), (0.30, "#6f8a3c"), (0.46, "#f3f0b4"), (0.60, "#6c7a34"), (1, "#1a1c12"))
    sky.glow(c, 0.345, 0.44, 0.34, "#fff7c8", 0.9)
    for x in np.concatenate([np.linspace(-0.02, 0.27, 13), np.linspace(0.42, 0.70, 13)]) + c.rng.uniform(-0.012, 0.012, 26):
        near = np.clip(abs(x - 0.345) / 0.35, 0, 1)
        width = 0.006 + 0.018 * near * c.rng.uniform(0.6, 1.2)
        tint = tuple(mix("#8a9a4a", "#22301a", np.float32(near)))
        c.blend(c.mask(lambda pen: pen.box(x - width / 2, 0, x + width / 2, 0.75)), tint)
    for tint, size, reach in (("#8aa048", 0.035, 0.10), ("#4d6a2c", 0.055, 0.17), ("#263c1b", 0.075, 0.26)):
        spots = [(0.345 + side * (reach + c.rng.uniform(0, 0.25)), c.rng.uniform(-0.02, 0.72)) for side in (-1, 1) for _ in range(34)]
        c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, y, size, size * 0.55, 34, 0.2) for x, y in spots]), tint)
    ground = np.full(c.w, 0.54, np.float32)
    path = np.abs(c.x - 0.345) - 0.74 * np.clip(c.y - 0.52, 0, 1) ** 1.05
    land.flat(c, ground + 0.02, "#55602a", "#14180e", 0.4)
    gap, tone = land.crackle(c, 0.50, 15, 1.0)
    stone = mix("#4a4a42", "#b3aa8c", np.clip(tone * 0.7 + 0.2 + (c.noise(50, 3) - 0.5) * 0.3, 0, 1)) * (0.55 + 0.45 * smooth(0.0, 0.12, gap))[..., None]
    c.blend((c.y > 0.53) * smooth(0.004, -0.004, path), stone * (0.62 + 0.45 * np.exp(-((c.y - 0.58) / 0.14) ** 2) * np.ones_like(c.x))[..., None])
    depths = np.geomspace(11.0, 0.92, 22)
    for i, depth in enumerate(depths):
        height = 0.78 / depth
        base = 0.5 + 0.52 / depth
        x = 0.345 + 0.030 * np.sin(depth * 0.55) * (1 - 1 / depth) * 1.2
        shade = 0.42 * (i / len(depths)) ** 2
        light = np.float32(max(0, 0.55 - 0.8 * i / len(depths)))
        built.torii(c, x, base, height, tuple(mix("#e2431e", "#ffb05a", light)), tuple(mix("#241a18", "#a86a3a", light)), shade)
        foot = 0.05 / depth
        for side in (-1, 1):
            c.blend(c.mask(lambda pen: pen.oval(x + side * height * 0.40, base, foot * 1.6, foot * 0.4), 0.003) * 0.35, "#0c0c08")
        if i in (4, 8, 12, 15):
            sky.mist(c, 0.48, 0.10, "#ffedb0", 0.16, patchy=0.2)
        if i == 13:
            c.blend(c.mask(lambda pen: life.person(pen, 0.352, 0.665, 0.105)), "#2a2a3c")
            c.shape([(0.337, 0.580), (0.367, 0.580), (0.366, 0.625), (0.338, 0.625)], "#e9e2d0")
    sky.rays(c, 0.42, -0.10, "#fff0b0", 0.30, 20, 1.1)


@scene("brooklyn-bridge")
def brooklyn_bridge(c):
    c.gradient((0, "#16224f"), (0.28, "#4a4a86"), (0.46, "#c4708a"), (0.58, "#ffab6a"), (0.66, "#ffd494"), (1, "#ffd494"))
    sky.clouds(c, "#ff9f8a", "#4c4478", 0.02, 0.44, cover=0.48, cells=5, stretch=5, opacity=0.8, light=(4, 7))
    horizon = 0.690
    for count, low, high, wide, body, lit, cell in ((46, 0.05, 0.16, 0.040, "#a0708c", 0.25, 0.006), (34, 0.08, 0.25, 0.046, "#5a4a78", 0.42, 0.007), (26, 0.06, 0.21, 0.058, "#2c2b54", 0.55, 0.0085)):
        for x in np.linspace(-0.02, 1.52, count) + c.rng.uniform(-0.02, 0.02, count):
            rise = np.exp(-((x - 0.86) / 0.34) ** 2) * 0.75 + 0.30 + 0.28 * np.exp(-((x - 0.22) / 0.16) ** 2)
            built.tower(c, x, horizon, wide * c.rng.uniform(0.6, 1.1), (low + (high - low) * c.rng.random()) * rise * 1.75, body, "#ffdc98", lit, cell, "#14163a", int(c.rng.integers(0, 3)) if wide > 0.042 else 0)
    x, w, top = 0.80, 0.068, 0.155
    spire = [(x - w / 2, horizon), (x - w / 2, 0.60), (x - w * 0.34, top + 0.045), (x + w * 0.34, top + 0.045), (x + w / 2, 0.60), (x + w / 2, horizon)]
    c.shape(spire, "#3a3f70")
    c.shape([(x, 0.62), (x + w * 0.02, top + 0.045), (x + w * 0.34, top + 0.045), (x + w / 2, 0.60), (x + w / 2, horizon), (x, horizon)], "#e88f8a")
    c.shape([(x - w * 0.12, 0.66), (x - w * 0.30, top + 0.05), (x + w * 0.02, top + 0.05)], "#6a6a9c")
    panes = (np.mod(c.y, 0.0085) < 0.004) * (c.rng.random((c.h // 8, c.w // 8)) < 0.42).repeat(8, 0).repeat(8, 1)
    c.blend(c.mask(lambda pen: pen.polygon(spire)) * panes * 0.55, "#ffe2a6")
    c.blend(c.mask(lambda pen: (pen.box(x - w * 0.20, top + 0.03, x + w * 0.20, top + 0.046), pen.polygon([(x - 0.003, top + 0.03), (x + 0.003, top + 0.03), (x, top - 0.065)]))), "#4a4a80")
    sky.glow(c, x, top - 0.065, 0.02, "#ffd0d0", 0.9)
    sky.haze(c, 0.56, 0.70, "#ffb384", 0.35)
    land.water(c, horizon, "#1c2450", "#b8748a", mirror=0.78, ripple=0.055, near_mirror=0.5)
    for x in c.rng.uniform(0.05, 1.48, 40):
        width = c.rng.uniform(0.003, 0.007)
        wave = c.noise(60, 2, 4.0)
        reach = horizon + c.rng.uniform(0.05, 0.22)
        c.add(np.exp(-((c.x - x) / width) ** 2) * (c.y > horizon) * smooth(reach, horizon, c.y) * smooth(0.45, 0.65, wave) * 0.7, c.rng.choice(["#ffd890", "#ffb870", "#ffe8c0", "#ff9a8a"]))
    deck, top = 0.600, 0.300
    built.bridge_span(c, (0.215, 1.29), deck, top, "#1c1a38", cable=0.0026, left=-0.45, right=1.95)
    for x in (0.215, 1.29):
        half = 0.046
        c.shape([(x - half, 0.735), (x - half * 0.92, deck), (x - half * 0.82, top - 0.010), (x + half * 0.82, top - 0.010), (x + half * 0.92, deck), (x + half, 0.735)], "#4c3550")
        c.shape([(x + half * 0.35, 0.735), (x + half * 0.35, top - 0.01), (x + half * 0.82, top - 0.010), (x + half * 0.92, deck), (x + half, 0.735)], "#a8645f")
        c.shape([(x - half * 1.02, top - 0.004), (x - half * 1.02, top - 0.022), (x + half * 1.02, top - 0.022), (x + half * 1.02, top - 0.004)], "#3a2848")
        for dx in (-0.40, 0.40):
            w = half * 0.24
            c.shape([(x + dx * half - w, deck), (x + dx * half - w, top + 0.085), (x + dx * half, top + 0.045), (x + dx * half + w, top + 0.085), (x + dx * half + w, deck)], "#e08a80")
        c.shape([(x - half * 1.15, 0.745), (x - half * 1.15, 0.690), (x + half * 1.15, 0.690), (x + half * 1.15, 0.745)], "#3a2848")
        c.blend((c.y > 0.745) * smooth(0.96, 0.745, c.y) * smooth(half * 1.3, half * 0.8, np.abs(c.x - x) + (c.noise(50, 2, 4) - 0.5) * 0.05) * 0.75, "#241f42")
    c.blend(c.mask(lambda pen: pen.box(-1, deck, 3, deck + 0.014)), "#1c1a38")
    for x in np.arange(0.01, 1.5, 0.046):
        sky.glow(c, x, deck - 0.006, 0.008, "#ffe6a8", 0.9)

    def piles(pen):
        rng = np.random.default_rng(5)
        for row in range(4):
            for x in np.arange(0.02 + 0.02 * row, 0.80 - 0.11 * row, 0.052):
                base = 0.985 - 0.045 * row
                pen.box(x - 0.006, base - rng.uniform(0.03, 0.055), x + 0.006, base + 0.02)
    c.blend(c.mask(piles), "#14142e")
    shore = 0.965 + 0.05 * smooth(0.2, 1.2, c.x[0]) + 0.008 * c.line_noise(30, 4)
    land.flat(c, shore, "#12122a")


@scene("hong-kong")
def hong_kong(c):
    c.gradient((0, "#0a1030"), (0.25, "#232a5c"), (0.42, "#5a4a7c"), (0.50, "#8a6a86"), (1, "#1a1c3c"))
    sky.clouds(c, "#8a6f92", "#2a2c58", 0.02, 0.36, cover=0.55, cells=4, stretch=4.5, opacity=0.6, light=(0, 6))
    hills = land.ridge(c, 0.405, 0.035, 3, 7)
    land.range_of(c, hills, "#34355e", "#1c2044", -1)
    near = land.ridge(c, 0.435, 0.018, 4, 6)
    land.flat(c, near, "#20244a")
    for x in np.linspace(-0.01, 1.51, 90) + c.rng.uniform(-0.01, 0.01, 90):
        height = c.rng.uniform(0.018, 0.055) * (1 + 0.8 * np.exp(-((x - 0.52) / 0.12) ** 2))
        built.tower(c, x, 0.485, c.rng.uniform(0.008, 0.018), height, "#2c2e58", "#ffd49a", 0.6, 0.0045)
    built.tower(c, 0.40, 0.485, 0.026, 0.185, "#2a3260", "#cfe4ff", 0.65, 0.005, "#14183c", 1)
    c.add(c.mask(lambda pen: pen.box(-1, 0.483, 3, 0.487), 0.004) * 0.6, "#ffc47a")
    land.water(c, 0.488, "#141a42", "#4a4270", mirror=0.80, ripple=0.05, near_mirror=0.5, scale=1.3)
    for x in c.rng.uniform(0.0, 1.5, 60):
        wave = c.noise(110, 1, 5.0)
        c.add(np.exp(-((c.x - x) / 0.0035) ** 2) * (c.y > 0.488) * smooth(0.488 + c.rng.uniform(0.03, 0.11), 0.488, c.y) * smooth(0.42, 0.62, wave) * 0.8, c.rng.choice(["#ffd890", "#ff7a9a", "#7ad8ff", "#b08aff", "#ffe8c0"]))

    def ferries(pen):
        for x, y, s in ((0.30, 0.535, 0.024), (0.95, 0.545, 0.028), (0.62, 0.520, 0.016)):
            pen.polygon([(x - s, y - s * 0.2), (x + s, y - s * 0.2), (x + s * 0.8, y), (x - s * 0.8, y)])
            pen.box(x - s * 0.7, y - s * 0.55, x + s * 0.7, y - s * 0.2)
    c.blend(c.mask(ferries), "#ffe9b4")
    shore = np.full(c.w, 0.585, np.float32) + 0.004 * c.line_noise(20, 3)
    land.flat(c, shore, "#1c1f48", "#0c1028", 0.25)
    c.add(c.below(shore) * smooth(0.62, 0.80, land.perspective_noise(c, 0.56, 1.6, 40)) * 0.5, "#c98a5a")
    palette = ("#1e2450", "#262a5a", "#1a2046", "#2e2c5c", "#22305c")
    lamps = ("#ffd890", "#ffe8c0", "#bfe0ff", "#ffc070", "#e0d0ff")
    for base, count, low, high, wide, cell in ((0.64, 34, 0.06, 0.20, 0.042, 0.0062), (0.72, 28, 0.09, 0.25, 0.050, 0.0070), (0.83, 24, 0.10, 0.31, 0.060, 0.0080), (0.96, 18, 0.10, 0.33, 0.076, 0.0096)):
        xs = np.linspace(-0.02, 1.52, count) + c.rng.uniform(-0.022, 0.022, count)
        for x in c.rng.permutation(xs):
            height = c.rng.uniform(low, high) * (0.66 + 0.34 * np.exp(-((x - 0.75) / 0.6) ** 2))
            i = int(c.rng.integers(0, 5))
            built.tower(c, x, base, wide * c.rng.uniform(0.55, 1.0), height, palette[i], lamps[int(c.rng.integers(0, 5))], c.rng.uniform(0.35, 0.7), cell, "#080a20", int(c.rng.choice([0, 0, 1, 2])))
            if c.rng.random() < 0.30:
                tint = c.rng.choice(["#ff4a7a", "#4ad8ff", "#7aff9a", "#ffb03a", "#b06aff"])
                c.add(c.mask(lambda pen: pen.box(x - wide * 0.24, base - height * 0.83, x + wide * 0.24, base - height * 0.80), 0.003), tint)
                sky.glow(c, x, base - height * 0.8, 0.035, tint, 0.35)
        sky.mist(c, base - 0.02, 0.05, "#4a3c6c", 0.28, patchy=0.2)
    x, base, w, top = 0.56, 0.86, 0.085, 0.160
    frame = [(x - w / 2, base), (x - w / 2, 0.42), (x - w / 4, 0.32), (x, 0.26), (x + w / 4, 0.38), (x + w / 2, 0.50), (x + w / 2, base)]
    c.shape(frame, "#223a68")
    c.shape([(x, base), (x, 0.26), (x + w / 4, 0.38), (x + w / 2, 0.50), (x + w / 2, base)], "#141f48")

    def trusses(pen):
        for y in np.arange(0.42, 0.86, w):
            pen.line([(x - w / 2, y), (x + w / 2, y + w)], 0.0028)
            pen.line([(x + w / 2, max(y, 0.50)), (x - w / 2, y + w)], 0.0028)
        pen.line(frame[1:6], 0.003)
        for dx in (-0.012, 0.004):
            pen.line([(x + dx, 0.30), (x + dx, top)], 0.0028)
        pen.line([(x - w / 2, 0.42), (x - w / 2, base)], 0.003)
        pen.line([(x + w / 2, 0.50), (x + w / 2, base)], 0.003)
    c.add(c.mask(trusses, 0.004) * 0.7, "#7ab8ff")
    c.add(c.mask(trusses), "#e8f4ff")
    x, base, w = 1.02, 0.84, 0.075
    c.shape([(x - w / 2, base), (x - w / 2, 0.30), (x - w * 0.38, 0.225), (x - w * 0.2, 0.195), (x + w * 0.2, 0.195), (x + w * 0.38, 0.225), (x + w / 2, 0.30), (x + w / 2, base)], "#26305c")
    c.shape([(x + w * 0.1, base), (x + w * 0.1, 0.195), (x + w * 0.2, 0.195), (x + w * 0.38, 0.225), (x + w / 2, 0.30), (x + w / 2, base)], "#161c42")

    def panes(pen):
        for y in np.arange(0.235, base, 0.0095):
            for px in np.arange(x - w * 0.44, x + w * 0.42, 0.0078):
                if c.rng.random() < 0.62:
                    pen.box(px, y, px + 0.0042, y + 0.0052, int(c.rng.uniform(110, 255)))
    c.blend(c.mask(panes), "#ffe6b4")
    c.add(c.mask(lambda pen: [pen.box(x + dx * w - 0.0022, 0.176, x + dx * w + 0.0022, 0.215) for dx in (-0.36, -0.2, 0, 0.2, 0.36)], 0.0015), "#ffffff")
    wood = 0.945 - 0.16 * smooth(0.45, 0.0, c.x[0]) - 0.10 * smooth(1.15, 1.5, c.x[0]) + 0.012 * c.line_noise(20, 4)
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, px, float(wood[c.column(px)]) + 0.03, 0.045, 0.032, 60) for px in np.linspace(0, 1.5, 40)]), "#0c1424")
    land.flat(c, wood + 0.03, "#0a101e")


@scene("oia", PORTRAIT, grain=0)
def oia(c):
    c.gradient((0, "#5f86c4"), (0.20, "#c3b3cc"), (0.34, "#ffb98a"), (0.43, "#ffd692"), (1, "#ffd692"))
    sky.clouds(c, "#ffd0a4", "#a88fb4", 0.02, 0.30, cover=0.42, cells=4, stretch=5, opacity=0.65, light=(-3, 7))
    sky.sun(c, 0.135, 0.395, 0.026, "#fffadc", "#ffab4c", 0.36, 0.9)
    horizon = 0.435
    isle = land.peaks(c, 0.44, [(0.28, 0.405, 0.16), (0.40, 0.415, 0.14)], rough=0.004)
    c.blend(c.below(isle) * (c.y < horizon), "#b5808c")
    land.water(c, horizon, "#2c5a94", "#e8a888", mirror=0.62, ripple=0.040, near_mirror=0.22, scale=1.3)
    land.glitter(c, horizon, 0.135, 0.022, "#fff0b8", 0.95, bottom=0.85)
    cliff = np.interp(c.x[0], [0, 0.10, 0.20, 0.30, 0.42, 0.54, 0.67], [1.1, 0.98, 0.80, 0.66, 0.53, 0.46, 0.41]) + 0.012 * c.line_noise(12, 5)
    cliff = cliff.astype(np.float32)
    beds = np.sin(c.y * 120 + 8 * c.noise(5, 4) + c.x * 20)
    c.blend(c.below(cliff), mix("#5a3038", "#c9805a", np.clip(land.facets(c, cliff, -1) * 0.7 + 0.2 + 0.10 * beds, 0, 1)))
    houses = []
    for row, y in enumerate(np.linspace(0.47, 1.02, 13)):
        start = float(np.interp(y, cliff[::-1][np.argsort(cliff[::-1])], c.x[0][::-1][np.argsort(cliff[::-1])]))
        x = max(start + 0.015, -0.05)
        while x < c.aspect + 0.05:
            width = c.rng.uniform(0.055, 0.100) * (0.65 + 0.06 * row)
            houses.append((x + width / 2, y + c.rng.uniform(-0.010, 0.010), width, c.rng.uniform(0.040, 0.062) * (0.75 + 0.05 * row)))
            x += width * c.rng.uniform(0.92, 1.15)
    for i, (x, y, w, h) in enumerate(houses):
        wall = mix("#ffffff", "#ffe6cc", np.float32(c.rng.uniform(0, 1)))
        if c.rng.random() < 0.10:
            wall = mix("#f6cfa8", "#f0b8a0", np.float32(c.rng.random()))
        c.shape([(x - w / 2, y + 0.09), (x - w / 2, y - h), (x + w / 2, y - h), (x + w / 2, y + 0.09)], tuple(wall))
        c.blend(c.mask(lambda pen: pen.box(x - w * 0.02, y - h, x + w / 2, y + 0.09)) * smooth(x - w * 0.02, x + w * 0.1, c.x) * 0.50, "#8a86b8")
        c.blend(c.mask(lambda pen: pen.box(x - w / 2, y - h - 0.003, x + w / 2, y - h + 0.002)), "#fff6e6")
        kind = c.rng.random()
        if kind < 0.40:
            r = w * 0.36
            c.blend(c.mask(lambda pen: (pen.oval(x, y - h, r, r * 0.75), pen.box(x - r, y - h, x + r, y - h + 0.004))) * (c.y < y - h + 0.002), tuple(wall))
            c.blend(c.mask(lambda pen: pen.oval(x, y - h, r, r * 0.75)) * (c.y < y - h) * smooth(x - r * 0.2, x + r, c.x) * 0.55, "#8a86b8")
        door = "#2a5fae" if c.rng.random() < 0.6 else "#7a4a3a"
        dx = c.rng.uniform(-0.2, 0.1) * w

        def openings(pen):
            dw, dh = w * 0.10, h * 0.55
            pen.box(x + dx - dw, y - dh, x + dx + dw, y)
            pen.oval(x + dx, y - dh, dw, dw)
            pen.box(x + dx + w * 0.20, y - h * 0.66, x + dx + w * 0.30, y - h * 0.38)
        c.blend(c.mask(openings), door)
        if c.rng.random() < 0.28:
            c.blend(c.mask(lambda pen: life.foliage(pen, c.rng, x - w * 0.36, y - h * 0.5, w * 0.20, h * 0.45, 46, 0.2)), "#d8407a")
            c.blend(c.mask(lambda pen: life.foliage(pen, c.rng, x - w * 0.36, y - h * 0.2, w * 0.14, h * 0.28, 26, 0.2)), "#4f7a3a")
    for x, y, r in ((0.555, 0.475, 0.042), (0.395, 0.655, 0.056), (0.575, 0.800, 0.072)):
        c.shape([(x - r * 1.25, y + r * 1.2), (x - r * 1.25, y + r * 0.35), (x + r * 1.25, y + r * 0.35), (x + r * 1.25, y + r * 1.2)], "#fff4e6")
        c.shape([(x - r * 1.02, y + r * 0.36), (x - r * 1.02, y), (x + r * 1.02, y), (x + r * 1.02, y + r * 0.36)], "#fff8ee")
        c.blend(c.mask(lambda pen: (pen.box(x, y, x + r * 1.25, y + r * 1.2),)) * smooth(x, x + r * 1.3, c.x) * 0.45, "#8a86b8")
        cap = c.mask(lambda pen: pen.oval(x, y, r, r)) * (c.y < y + 0.002)
        lit = np.clip(0.55 - (c.x - x) / r * 0.6 - (c.y - y) / r * 0.25, 0, 1)
        c.blend(cap, ramp(lit, (0, "#16386f"), (0.5, "#2a66b8"), (0.85, "#5f9ae0"), (1, "#ffd9b0")))
        for k in range(-2, 3):
            c.blend(c.mask(lambda pen: pen.oval(x + k * r * 0.42, y + r * 0.19, r * 0.07, r * 0.10)), "#2a5fae")
        c.blend(c.mask(lambda pen: (pen.line([(x, y - r), (x, y - r * 1.32)], r * 0.06), pen.line([(x - r * 0.1, y - r * 1.2), (x + r * 0.1, y - r * 1.2)], r * 0.06))), "#fffaf0")
    x, y = 0.27, 0.785
    c.shape([(x - 0.030, y + 0.05), (x - 0.030, y - 0.030), (x - 0.036, y - 0.036), (x - 0.036, y - 0.044), (x + 0.036, y - 0.044), (x + 0.036, y - 0.036), (x + 0.030, y - 0.030), (x + 0.030, y + 0.05)], "#fff4e4")
    for dx, dy in ((-0.014, 0.008), (0.014, 0.008)):
        c.blend(c.mask(lambda pen: (pen.oval(x + dx, y - 0.012, 0.009, 0.010), pen.box(x + dx - 0.009, y - 0.012, x + dx + 0.009, y + 0.022))), "#d99a86")
        c.blend(c.mask(lambda pen: (pen.oval(x + dx, y + 0.006, 0.005, 0.007), pen.line([(x + dx, y - 0.018), (x + dx, y)], 0.0015))), "#6a4a2a")
    c.blend(c.mask(lambda pen: (pen.oval(x, y - 0.044, 0.024, 0.022), pen.line([(x, y - 0.06), (x, y - 0.078)], 0.003), pen.line([(x - 0.006, y - 0.072), (x + 0.006, y - 0.072)], 0.003))) * (c.y < y - 0.040), "#fff4e4")

    def sail(pen):
        pen.polygon([(0.215, 0.520), (0.245, 0.520), (0.240, 0.526), (0.219, 0.526)])
        pen.polygon([(0.230, 0.478), (0.230, 0.517), (0.247, 0.517)])
        pen.polygon([(0.228, 0.484), (0.228, 0.517), (0.217, 0.517)])
    c.blend(c.mask(sail), "#fff2e0")


@scene("taj-mahal", PORTRAIT)
def taj_mahal(c):
    c.gradient((0, "#8aa4cc"), (0.22, "#d2b8cc"), (0.42, "#ffc4a0"), (0.56, "#ffe4b8"), (1, "#ffe4b8"))
    sky.glow(c, 0.76, 0.48, 0.42, "#ffc887", 0.75)
    sky.clouds(c, "#ffdcc4", "#b8a4c4", 0.02, 0.28, cover=0.42, cells=4, stretch=6, opacity=0.6, light=(4, 5))
    x, base = c.aspect / 2, 0.590
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, t, 0.585, 0.035, 0.016, 40) for t in np.linspace(0, c.aspect, 24)]), "#b8a08c")
    stone, dim, dark = "#fff4e2", "#b0859a", "#7a5a78"

    def minaret(at, foot, height):
        wide = height * 0.026
        body = c.mask(lambda pen: (pen.polygon([(at - wide, foot), (at + wide, foot), (at + wide * 0.72, foot - height * 0.88), (at - wide * 0.72, foot - height * 0.88)]),
                                   [pen.box(at - wide * 1.5, foot - height * t, at + wide * 1.5, foot - height * (t - 0.016)) for t in (0.32, 0.60, 0.86)],
                                   pen.box(at - wide * 0.9, foot - height * 0.93, at + wide * 0.9, foot - height * 0.88), built.dome(pen, at, foot - height * 0.92, wide * 1.1)))
        c.blend(body, mix(dim, stone, smooth(at - wide, at + wide * 0.8, c.x)))
    for side in (-1, 1):
        minaret(x + side * 0.215, base - 0.022, 0.290)
    body = c.mask(lambda pen: (pen.polygon([(x - 0.150, base - 0.022), (x - 0.150, base - 0.155), (x + 0.150, base - 0.155), (x + 0.150, base - 0.022)]),
                               pen.box(x - 0.052, base - 0.185, x + 0.052, base - 0.022), pen.box(x - 0.062, base - 0.215, x + 0.062, base - 0.150)))
    c.blend(body, mix(dim, stone, np.clip(0.55 + (c.x - x) / 0.26, 0, 1)))
    main = c.mask(lambda pen: built.dome(pen, x, base - 0.215, 0.066, 1.16))
    shade = np.clip(0.42 + (c.x - x) / 0.10 - (c.y - (base - 0.28)) / 0.5, 0, 1)
    c.blend(main, mix(dim, stone, shade))
    for side in (-1, 1):
        at = x + side * 0.100
        small = c.mask(lambda pen: (pen.box(at - 0.024, base - 0.180, at + 0.024, base - 0.152), built.dome(pen, at, base - 0.178, 0.026)))
        c.blend(small, mix(dim, stone, np.clip(0.5 + (c.x - at) / 0.06, 0, 1)))
        c.blend(c.mask(lambda pen: [pen.box(at + k * 0.012 - 0.0035, base - 0.176, at + k * 0.012 + 0.0035, base - 0.156) for k in (-1, 0, 1)]), dark)

    def arch(at, foot, wide, tall, tint):
        curve = [(at - wide, foot), (at - wide, foot - tall * 0.62), (at - wide * 0.75, foot - tall * 0.82), (at, foot - tall), (at + wide * 0.75, foot - tall * 0.82), (at + wide, foot - tall * 0.62), (at + wide, foot)]
        c.shape(curve, tint)
    arch(x, base - 0.022, 0.034, 0.138, "#b88a94")
    arch(x, base - 0.022, 0.026, 0.110, "#8a6078")
    arch(x, base - 0.022, 0.010, 0.040, "#4a3050")
    for side in (-1, 1):
        for at, wide in ((0.082, 0.017), (0.130, 0.014)):
            for foot, tall in ((base - 0.024, 0.055), (base - 0.090, 0.055)):
                arch(x + side * at, foot, wide, tall, "#b88a94")
                arch(x + side * at, foot, wide * 0.65, tall * 0.75, "#7f5a74")
    c.blend(c.mask(lambda pen: pen.box(x - 0.235, base - 0.024, x + 0.235, base)), mix("#c9a49c", "#ffe8d4", smooth(x - 0.2, x + 0.25, c.x * np.ones_like(c.y))))
    c.blend(c.mask(lambda pen: [arch_row(pen, x + t, base) for t in np.linspace(-0.225, 0.225, 26)]), "#b08a8c")
    for side in (-1, 1):
        minaret(x + side * 0.262, base + 0.012, 0.335)
    sky.mist(c, 0.590, 0.035, "#ffdcc0", 0.60, patchy=0.35)
    lawn = np.full(c.w, 0.603, np.float32)
    land.flat(c, lawn, "#a3a06a", "#3f5230", 0.36)
    for side in (-1, 1):
        for depth in np.geomspace(5.2, 1.02, 9):
            at, foot = x + side * 0.26 / depth, 0.55 + 0.27 / depth
            tall = 0.265 / depth
            c.blend(c.mask(lambda pen: pen.oval(at + side * tall * 0.15, foot, tall * 0.22, tall * 0.045), 0.002) * 0.4, "#1c2a1c")
            tree = c.mask(lambda pen: life.cypress(pen, c.rng, at, foot, tall))
            c.blend(tree, mix("#22402c", "#6f7f48", smooth(at - tall * 0.04, at + tall * 0.11, c.x)))
    pave = np.abs(c.x - x) - (0.012 + 0.50 * np.clip(c.y - 0.603, 0, 1))
    c.blend((c.y > 0.603) * smooth(0.004, -0.004, pave), mix("#b08a72", "#f0cfae", c.noise(40, 4, 3)))
    start = 0.618
    before = c.px.copy()
    pool = np.abs(c.x - x) - (0.008 + 0.36 * np.clip(c.y - 0.603, 0, 1))
    wave = land.perspective_noise(c, 0.60, 1.0) - 0.5
    t = np.clip((c.y - start) / (1 - start), 0, 1)
    rows = np.clip((2 * 0.603 - c.y + wave * 0.010 * (0.2 + t)) * (c.h - 1), 0, c.h - 1).astype(int)
    columns = np.clip(np.arange(c.w)[None, :] + wave * 16 * (0.3 + t), 0, c.w - 1).astype(int)
    image = before[rows, columns]
    c.blend((c.y > start) * smooth(0.002, -0.002, pool), image * 0.86 + mix("#3a4a6a", "#3a4a6a", np.float32(0)) * 0.10)
    c.blend((c.y > start) * smooth(0.004, 0.0, np.abs(pool)) * 0.8, "#fff0dc")
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.16, 0.22, 0.024), (0.20, 0.19, 0.020), (0.12, 0.18, 0.018), (0.50, 0.14, 0.020))]), "#5a4a6a")


def arch_row(pen, x, base):
    pen.box(x - 0.005, base - 0.014, x + 0.005, base - 0.002)
    pen.oval(x, base - 0.014, 0.005, 0.005)


@scene("tongariki", grain=0)
def tongariki(c):
    c.gradient((0, "#283a74"), (0.22, "#7a5c98"), (0.42, "#e8806c"), (0.56, "#ffbe68"), (0.64, "#ffe6a0"), (1, "#ffe6a0"))
    sky.clouds(c, "#ffb36a", "#6a4a84", 0.05, 0.46, cover=0.50, cells=4, stretch=6, opacity=0.9, light=(0, 8), softness=0.08)
    sky.sun(c, 0.80, 0.590, 0.044, "#fffbe0", "#ff9f3c", 0.40, 0.9)
    horizon = 0.655
    head = land.peaks(c, 0.66, [(1.42, 0.40, 0.26), (1.30, 0.47, 0.22)], rough=0.008, curve=0.6)
    c.blend(c.below(head) * (c.y < horizon), "#5a3c66")
    land.water(c, horizon, "#5a4a7a", "#ffc07a", mirror=0.7, ripple=0.03)
    land.glitter(c, horizon, 0.80, 0.05, "#fff4c0", 0.9, bottom=0.74)
    base = 0.745
    heights = (0.205, 0.235, 0.190, 0.260, 0.225, 0.280, 0.240, 0.215, 0.300, 0.250, 0.225, 0.270, 0.200, 0.235, 0.185)
    xs = np.linspace(0.105, 1.395, 15)
    land.flat(c, 0.742 + 0.006 * c.line_noise(6, 4, sharp=False), "#3a2440", "#150f20", 0.22)
    for x, height in zip(xs, heights):
        shadow = [(x - height * 0.18, 0.795), (x + height * 0.18, 0.795), (x + (x - 0.80) * 0.55 + height * 0.34, 1.02), (x + (x - 0.80) * 0.55 - height * 0.34, 1.02)]
        c.blend(c.mask(lambda pen: pen.polygon(shadow), 0.004) * smooth(1.03, 0.79, c.y) * 0.6, "#0a0714")
    grass = c.noise(60, 3, 2.0)
    for x0, x1 in zip(xs, xs[1:]):
        mid = (x0 + x1) / 2
        beam = [(mid - 0.010, 0.79), (mid + 0.010, 0.79), (mid + (mid - 0.80) * 0.55 + 0.022, 1.0), (mid + (mid - 0.80) * 0.55 - 0.022, 1.0)]
        c.blend(c.mask(lambda pen: pen.polygon(beam), 0.003) * smooth(1.0, 0.78, c.y) * (0.3 + 0.5 * grass) * 0.8, "#e8924a")

    def statues(pen, grow=0.0):
        for x, height in zip(xs, heights):
            built.moai(pen, x, base, height + grow)
        x, height = xs[13], heights[13]
        pen.polygon([(x - height * 0.10, base - height * 0.985), (x - height * 0.12, base - height * 1.15), (x + height * 0.10, base - height * 1.15), (x + height * 0.10, base - height * 0.985)])
    figures = c.mask(statues)
    c.blend(figures, "#1a1226")
    toward = np.exp(-((c.x - 0.80) / 0.40) ** 2)
    left, right = np.clip(figures - np.roll(figures, 5, 1), 0, 1), np.clip(figures - np.roll(figures, -5, 1), 0, 1)
    c.blend(np.where(c.x > 0.80, left, right) * toward * 0.95, "#ff9a4a")
    c.shape([(0.035, 0.800), (0.045, base - 0.004), (1.455, base - 0.004), (1.465, 0.800)], "#140e1e")
    gap, tone = land.crackle(c, 0.45, 24, 2.0, 0.5)
    wall = c.mask(lambda pen: pen.polygon([(0.035, 0.800), (0.045, base - 0.004), (1.455, base - 0.004), (1.465, 0.800)]))
    c.blend(wall * smooth(0.08, 0.3, gap) * tone * 0.8, "#3c2840")
    c.blend(wall * smooth(0.006, 0.0, np.abs(c.y - base + 0.002)) * toward, "#ffa050")
