"""Coasts, lakes, waterfalls and ice."""

import numpy as np

from . import built, land, life, sky
from .canvas import mix, ramp, smooth
from .scene import PORTRAIT, scene


@scene("shaman-rock")
def baikal_ice(c):
    c.gradient((0, "#5f97cf"), (0.30, "#a9cde8"), (0.47, "#f3dfc8"), (0.5, "#f6d6b4"))
    sky.glow(c, 1.25, 0.36, 0.45, "#ffd9a0", 0.55)
    sky.clouds(c, "#fff2df", "#9fb8d6", 0.05, 0.30, cover=0.42, stretch=6, opacity=0.55)
    far = land.ridge(c, 0.468, 0.028, 3, 6)
    land.range_of(c, far, "#c9d6ea", "#8fa6cb", 1, haze="#f0dcc8", haze_depth=0.05, haze_amount=0.6)
    horizon = 0.495
    rock = land.peaks(c, 0.52, [(0.37, 0.20, 0.17), (0.44, 0.24, 0.15), (0.64, 0.31, 0.12), (0.70, 0.36, 0.13), (0.22, 0.44, 0.12), (0.82, 0.46, 0.1)],
                      rough=0.030, cells=22, curve=0.62)
    on = c.below(rock) * (c.y < horizon + 0.004)
    light = land.facets(c, rock, 1, spread=0.35, detail=1.1, ribs=40)
    c.blend(on, mix("#4a3d42", "#c98f62", light))
    c.blend(on * smooth(0.56, 0.72, c.noise(20, 5)) * light * 0.75, "#d8602c")
    c.blend(on * smooth(0.485, 0.499, c.y + (c.noise(30, 4) - 0.5) * 0.03) * 0.9, "#eef4fa")
    above = c.px.copy()
    t = np.clip((c.y - horizon) / (1 - horizon), 0, 1) * np.ones_like(c.x)
    ice = ramp(t, (0, "#cfe6ee"), (0.12, "#86c3d6"), (0.45, "#2f8fb0"), (1, "#0d4f7c"))
    wave = land.perspective_noise(c, horizon, 0.5)
    rows = np.clip((2 * horizon - c.y + (wave - 0.5) * 0.006) * (c.h - 1), 0, c.h - 1).astype(int)
    mirror = above[rows, np.arange(c.w)[None, :]]
    ice = ice + (mirror - ice) * (0.55 - 0.30 * t)[..., None]
    c.blend(c.y >= horizon, ice)
    deep = land.perspective_noise(c, horizon, 0.8, 12)
    c.blend((c.y > horizon) * smooth(0.55, 0.8, deep) * 0.35, "#0a3c66")
    for cells, width, strength, shift in ((1.7, 0.022, 0.95, 0.0), (4.6, 0.030, 0.50, 5.0)):
        gap, _ = land.crackle(c, horizon, cells, shift)
        c.blend((c.y > horizon + 0.004) * smooth(width, width * 0.15, gap) * strength * (0.5 + 0.5 * t), "#f2fbff")
        c.blend((c.y > horizon + 0.004) * smooth(width * 5, 0, gap) * 0.20, "#bfeaf2")
    bubbles = smooth(0.80, 0.88, land.perspective_noise(c, horizon, 1.6, 60, 2)) * smooth(0.2, 0.6, t)
    c.blend(bubbles * 0.5, "#dff6fb")
    drift = smooth(0.62, 0.80, land.perspective_noise(c, horizon, 0.45, 14)) * (c.y > horizon)
    c.blend(drift * 0.6, "#f7fbff")
    c.blend(c.mask(lambda pen: life.person(pen, 1.13, 0.60, 0.060)), "#c2352b")
    c.blend(c.mask(lambda pen: pen.polygon([(1.10, 0.60), (1.16, 0.60), (1.02, 0.612)]), 0.002) * 0.5, "#0a3c66")


@scene("perito-moreno")
def glacier(c):
    c.gradient((0, "#6f9cc8"), (0.4, "#cfe0ec"), (1, "#cfe0ec"))
    sky.clouds(c, "#ffffff", "#8ea2b8", -0.1, 0.32, cover=0.62, cells=4, stretch=2.6)
    back = land.Terrain(c, (0.40, 0.50), [(0.10, 0.2, 0.28, 0.36), (0.42, 0.1, 0.22, 0.30), (1.02, 0.2, 0.34, 0.42), (1.42, 0.3, 0.30, 0.36)], front=0.5)
    back.paint("#8d99aa", "#46566e", "#cbd9e6", 0.65)
    back.cover(0.13, "#ffffff", "#9fb4d2", 0.08, 2.6)
    mid = land.Terrain(c, (0.45, 0.54), [(-0.08, 0.4, 0.22, 0.40), (1.60, 0.4, 0.24, 0.40)], front=0.5, cells=7)
    mid.paint("#6f7f63", "#33443f", "#b9cbd8", 0.40)
    top = 0.455 - 0.020 * c.line_noise(40, 5, 0.6) - 0.055 * np.exp(-((c.x[0] - 0.72) / 0.5) ** 2)
    field_top = 0.345 - 0.014 * c.line_noise(30, 4, 0.6) + 0.10 * np.abs(c.x[0] - 0.78) ** 1.5
    seracs = c.noise(22, 5, 1.6)
    gap, tone = land.crackle(c, 0.30, 26, 2.0, 0.6)
    shade = np.clip(np.gradient(seracs, axis=0) * c.h / 60 + 0.60 + (tone - 0.5) * 0.5, 0, 1)
    c.blend(c.below(field_top), mix("#8fbbdb", "#ffffff", shade))
    c.blend(c.below(field_top) * smooth(0.10, 0.0, gap) * 0.55, "#5d9fd0")
    face = np.clip((c.y - top[None, :]) / 0.20, 0, 1)
    block = c.ridged(11, 5, 0.42)
    shade = np.gradient(block, axis=1) * c.h / 60 + 0.5
    wall = ramp(np.clip(shade * 0.75 + block * 0.35 - 0.12 * face, 0, 1), (0, "#0f4f8f"), (0.25, "#3a8fcb"), (0.5, "#9bd2ec"), (0.75, "#e4f5fc"), (1, "#ffffff"))
    c.blend(c.below(top), wall)
    c.blend(c.below(top) * smooth(0.36, 0.22, block) * smooth(0.0, 0.25, face) * 0.8, "#0b3f78")
    c.blend(c.below(top) * smooth(0.16, 0.0, face) * 0.7, "#ffffff")
    c.blend(c.below(top) * smooth(0.7, 1.0, face) * 0.35, "#2c83ba")
    horizon = 0.640
    land.water(c, horizon, "#5c8f9c", "#9fc3c8", mirror=0.55, ripple=0.035, near_mirror=0.25)

    def floes(pen):
        for _ in range(90):
            t = c.rng.random() ** 1.6
            y = horizon + 0.008 + t * 0.33
            size = (0.004 + 0.030 * t) * c.rng.uniform(0.4, 1.3)
            x = c.rng.uniform(0, c.aspect)
            pen.polygon([(x - size, y), (x - size * 0.7, y - size * c.rng.uniform(0.2, 0.8)), (x - size * 0.1, y - size * c.rng.uniform(0.3, 1.0)),
                         (x + size * 0.5, y - size * c.rng.uniform(0.2, 0.7)), (x + size, y), (x, y + size * 0.16)])
    ice = c.mask(floes)
    c.blend(np.roll(ice, 7, 0) * 0.45, "#2f7fa0")
    c.blend(ice, ramp(c.noise(40, 3), (0.2, "#8fcbe6"), (0.6, "#ffffff")))
    calve = np.exp(-((c.x - 1.02) / 0.035) ** 2) * smooth(0.70, 0.60, c.y) * smooth(0.53, 0.62, c.y) * c.noise(40, 4)
    c.blend(calve * 1.1, "#ffffff")
    bank = land.ridge(c, 0.93, 0.03, 2, 4, sharp=False) + 0.10 * (1 - c.x[0] / c.aspect)
    land.flat(c, bank, "#3f4a2e", "#20291c", 0.14)
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, float(bank[c.column(x)]) + 0.02, 0.05, 0.03, 70) for x in np.linspace(0.5, 1.5, 17)]), "#2c3a22")
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, float(bank[c.column(x)]) + 0.03, 0.035, 0.02, 30) for x in np.linspace(0.7, 1.5, 12)]), "#8c3b22")


@scene("skogafoss", PORTRAIT)
def skogafoss(c):
    c.gradient((0, "#8fb4d6"), (0.25, "#dbe8f0"), (1, "#dbe8f0"))
    sky.clouds(c, "#ffffff", "#93a7bd", -0.2, 0.26, cover=0.62, cells=5, stretch=2.2)
    rim = 0.17 + 0.015 * c.line_noise(5, 4, sharp=False) + 0.030 * np.exp(-((c.x[0] - 0.335) / 0.07) ** 2)
    shelf = c.noise(30, 5, 2.5)
    hang = c.noise(34, 5, 0.35)
    depth = np.clip((c.y - rim[None, :]) / 0.48, 0, 1)
    cliff = ramp(np.clip(hang * 1.3 - 0.15, 0, 1), (0, "#15191a"), (0.4, "#353a36"), (0.75, "#5a5a4e"), (1, "#7b7766"))
    c.blend(c.below(rim), cliff)
    moss = smooth(0.36, 0.62, shelf + 0.34 * (1 - depth) - 0.16 + 0.25 * np.abs(c.x - 0.335))
    c.blend(c.below(rim) * moss, mix("#2f4a1c", "#8fae3e", np.clip(c.noise(60, 4) * 1.2 - 0.1, 0, 1)))
    c.blend(c.below(rim) * smooth(0.03, 0.0, c.y - rim[None, :]) * 0.8, "#a8c254")
    for side, x0, spread in ((-1, 0.0, 0.27), (1, c.aspect, 0.25)):
        slope = 0.70 - 0.56 * np.clip(1 - np.abs(c.x[0] - x0) / spread, 0, 1) ** 0.8 + 0.02 * c.line_noise(10, 5)
        light = land.facets(c, slope.astype(np.float32), side, spread=0.4, detail=0.8)
        c.blend(c.below(slope), mix("#223417", "#7fa03a" if side < 0 else "#648a33", light))
        c.blend(c.below(slope) * smooth(0.62, 0.78, c.noise(24, 5)) * 0.7, "#33342c")
    half = 0.088 + 0.020 * np.clip((c.y - 0.19) / 0.5, 0, 1)
    strands = c.noise(60, 4, 0.05)
    wander = (c.noise(6, 3) - 0.5) * 0.03
    fall = smooth(half, half * 0.72, np.abs(c.x - 0.335 + wander)) * smooth(0.185, 0.200, c.y) * smooth(0.80, 0.74, c.y)
    c.blend(fall, mix("#9db8c8", "#ffffff", np.clip(strands * 1.5 - 0.2, 0, 1)))
    river = 0.735
    beach = river + 0.006 * c.line_noise(9, 4)
    c.blend(c.below(beach), mix("#24272a", "#575b5d", c.noise(90, 4, 2)))
    bank = 0.11 * smooth(river, 1.0, c.y)
    course = np.abs(c.x - 0.335 - 0.05 * np.sin((c.y - river) * 11)) - (0.11 + bank + 0.22 * np.clip(c.y - river, 0, 1))
    stream = smooth(0.012, -0.012, course + (c.noise(30, 4) - 0.5) * 0.05) * (c.y > river)
    riffle = land.perspective_noise(c, 0.70, 0.9, 30)
    c.blend(stream, mix("#4f6b78", "#dbe9ee", smooth(0.45, 0.8, riffle + 0.15 * smooth(0.86, 0.75, c.y))))
    sky.mist(c, 0.735, 0.055, "#f4fafc", 0.9, cells=9, stretch=1.6, patchy=0.45)
    sky.mist(c, 0.66, 0.11, "#eef5f8", 0.35, cells=6, stretch=1.2, patchy=0.7)
    sky.rainbow(c, 0.30, 0.88, 0.26, 0.040, 0.42, clip=smooth(0.80, 0.66, c.y) * smooth(0.30, 0.45, c.x))
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.16, 0.30, 0.02), (0.20, 0.27, 0.016), (0.50, 0.24, 0.018), (0.47, 0.31, 0.014))]), "#f2f2ee")
    c.blend(c.mask(lambda pen: life.person(pen, 0.145, 0.868, 0.075, arms=0.0)), "#1d2228")
    c.shape([(0.136, 0.806), (0.154, 0.806), (0.152, 0.834), (0.138, 0.834)], "#e2382c")


@scene("reynisfjara")
def black_beach(c):
    c.gradient((0, "#56697c"), (0.30, "#a3b0ba"), (0.46, "#e4dccc"), (1, "#e4dccc"))
    sky.glow(c, 0.98, 0.43, 0.40, "#fff0cf", 0.55, squash=1.8)
    sky.clouds(c, "#d6dbdd", "#4c5a6a", -0.1, 0.40, cover=0.74, cells=5, stretch=3.2, opacity=0.85)
    horizon = 0.47
    land.water(c, horizon, "#4d6470", "#93a6ad", mirror=0.55, ripple=0.05, near_mirror=0.2, scale=1.2)
    land.glitter(c, horizon, 0.98, 0.10, "#fff6df", 0.75, bottom=0.72)
    for summits in ([(1.13, 0.235, 0.050), (1.16, 0.33, 0.06)], [(1.26, 0.29, 0.035), (1.245, 0.38, 0.05)], [(1.35, 0.35, 0.03)], [(1.06, 0.44, 0.03)]):
        stack = land.peaks(c, 0.492, summits, rough=0.016, cells=60, curve=0.55)
        on = c.below(stack) * (c.y < 0.486 + 0.004 * c.line_noise(30, 2)[None, :]) * (stack[None, :] < 0.486)
        c.blend(on, mix("#161b20", "#454b50", land.facets(c, stack, -1, spread=0.2, detail=1.2, ribs=80)))
    for x0, x1 in ((1.03, 1.42),):
        c.blend(np.exp(-((c.y - 0.489) / 0.005) ** 2) * smooth(x0, x0 + 0.08, c.x) * smooth(x1, x1 - 0.08, c.x) * c.noise(60, 3, 2), "#ffffff")
    for y, width, strength in ((0.560, 0.010, 0.8), (0.590, 0.018, 0.85), (0.630, 0.030, 0.95)):
        land.surf(c, y, "#f6fafb", 0.008, width, strength, -0.02)
    sand = 0.665 - 0.03 * (c.x[0] / c.aspect) + 0.012 * c.line_noise(2, 3, sharp=False)
    land.flat(c, sand - 0.012, "#1a2228")
    cliff = np.where(c.x[0] < 0.62, 0.10 + 0.55 * np.clip((c.x[0] - 0.10) / 0.52, 0, 1) ** 1.25, 1.2) + 0.008 * c.line_noise(40, 3)
    columns = np.round(c.x * 62 + 1.5 * c.noise(4, 2)) / 62
    top = np.interp(columns, c.x[0], cliff) + 0.030 * (np.sin(columns * 913.7) * 0.5 + 0.5)
    face = np.clip((c.y - top) * c.h + 0.5, 0, 1) * (c.x < 0.66)
    edge = np.abs(c.x * 62 + 1.5 * c.noise(4, 2) * 0 - columns * 62)
    tone = np.sin(columns * 331.1) * 0.5 + 0.5
    within = (c.x - columns) * 62 + 0.5
    c.blend(face, mix("#14181b", "#565c60", np.clip(0.15 + 0.5 * tone + 0.35 * within - 0.2 * c.noise(20, 4), 0, 1)))
    c.blend(face * smooth(0.42, 0.5, edge) * 0.6, "#08090b")
    c.blend(face * smooth(0.62, 0.78, c.noise(16, 5)) * smooth(0.42, 0.12, c.y) * 0.9, "#67803a")
    cave = (smooth(0.155, 0.140, np.sqrt(((c.x - 0.27) / 0.9) ** 2 + ((c.y - 0.66) / 1.15) ** 2)))
    c.blend(cave * face, "#05070a")
    wet = mix("#0f1418", "#39444c", smooth(0.25, 0.0, c.y - sand[None, :]))
    c.blend(c.below(sand), wet)
    shine = np.exp(-((c.x - 0.98) / 0.32) ** 2) * smooth(0.16, 0.0, np.abs(c.y - sand[None, :] - 0.05)) * c.noise(30, 4, 4)
    c.add(c.below(sand) * shine * 0.55, "#d9d6cc")
    land.surf(c, 0.672, "#f6fafb", 0.008, 0.050, 1.0, -0.05)
    gap, tone = land.crackle(c, 0.50, 30, 3.0, 1.4)
    pebble = np.clip(0.15 + tone * 0.5, 0, 1) * smooth(0.0, 0.25, gap)
    c.blend(smooth(0.72, 0.95, c.y + (c.noise(8, 4, 3) - 0.5) * 0.16) * 0.9, mix("#05070a", "#747c84", pebble))
    c.blend(c.mask(lambda pen: (life.person(pen, 0.80, 0.775, 0.075), life.person(pen, 0.835, 0.778, 0.068))), "#11151a")
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.58, 0.17, 0.03), (0.66, 0.13, 0.024), (0.74, 0.20, 0.02), (0.53, 0.25, 0.018))]), "#22282e")


@scene("reine")
def midnight_sun(c):
    c.gradient((0, "#5e7fb0"), (0.22, "#b9a6bd"), (0.40, "#ffbf86"), (0.54, "#ffdc9a"), (1, "#ffdc9a"))
    sky.sun(c, 0.72, 0.475, 0.024, "#fff6da", "#ffb45c", 0.42, 0.8)
    sky.clouds(c, "#ffd2a0", "#8d84a8", 0.02, 0.34, cover=0.46, cells=4, stretch=6, opacity=0.8, light=(0, 6))
    horizon = 0.56
    far = land.peaks(c, 0.56, [(0.55, 0.44, 0.16), (0.85, 0.46, 0.2), (0.70, 0.50, 0.2)], rough=0.02)
    land.range_of(c, far, "#d99b7c", "#a0809a", 1, haze="#ffd09a", haze_depth=0.12, haze_amount=0.7)
    for summits, lamp in (([(0.08, 0.4, 0.34, 0.26), (0.27, 0.3, 0.46, 0.30), (0.43, 0.5, 0.22, 0.18), (-0.08, 0.5, 0.3, 0.3)], 1),
                          ([(1.17, 0.3, 0.42, 0.30), (1.33, 0.5, 0.33, 0.26), (1.48, 0.3, 0.42, 0.3), (1.02, 0.4, 0.17, 0.17)], -1)):
        walls = land.Terrain(c, (0.535, 0.585), summits, span=0.5, rough=0.34, cells=6, curve=0.95, light=lamp, front=-0.15, slope=0.4)
        walls.shown *= walls.altitude > -0.004
        walls.paint("#d98a5f", "#3d3856", "#f0b08a", 0.28)
        walls.cover(0.02, "#a9a05a", "#3f4650", 0.05, 1.3, below=0.16, opacity=0.8)
        walls.cover(0.20, "#ffdcc0", "#7c7fa8", 0.06, 3.2)
    sky.mist(c, 0.535, 0.022, "#ffd8a8", 0.55, patchy=0.4)
    land.water(c, horizon, "#2e4a68", "#e8b083", mirror=0.85, ripple=0.030, near_mirror=0.55)
    land.glitter(c, horizon, 0.72, 0.040, "#fff0bf", 0.9)
    spit = np.where(c.x[0] > 0.80, 0.742 + 0.06 * smooth(1.0, 0.80, c.x[0]), 1.2) - 0.008 * c.line_noise(26, 5)
    c.blend(c.below(spit) * (c.y < 0.80 + 0.004 * c.line_noise(30, 3)[None, :]), mix("#1d2426", "#5f6a44", c.noise(40, 4, 2)))
    for x, y, w, h, wall in ((1.44, 0.752, 0.11, 0.105, "#a8261f"), (1.30, 0.760, 0.12, 0.12, "#b52d22"), (1.14, 0.762, 0.105, 0.105, "#9c241e"), (0.985, 0.772, 0.085, 0.085, "#d0a23a")):
        built.house(c, x, y, w, h, wall, "#30343c", "#ffe29a", "#f3ece0", side=0.05)
        built.stilts(c, x + 0.02, y, w * 1.25, 0.038, "#2a1c18", 7)
    rows = np.clip(((2 * 0.795 - c.y) * (c.h - 1) + (land.perspective_noise(c, 0.7, 0.9) - 0.5) * 0.05 * c.h), 0, c.h - 1).astype(int)
    image = c.px[rows, np.arange(c.w)[None, :]]
    where = (c.y > 0.795) * smooth(0.84, 0.97, c.x) * 0.72
    c.blend(where, image * 0.75 + mix("#2e4a68", "#2e4a68", np.float32(0)) * 0.10)

    def boat(pen):
        pen.polygon([(0.30, 0.80), (0.48, 0.80), (0.455, 0.826), (0.325, 0.826)])
        pen.box(0.36, 0.775, 0.405, 0.802)
        pen.line([(0.42, 0.80), (0.42, 0.735)], 0.003)
    c.blend(c.mask(boat), "#20232c")
    c.shape([(0.305, 0.800), (0.475, 0.800), (0.470, 0.806), (0.310, 0.806)], "#e9e2d2")
    c.blend(np.clip((c.y > 0.827) * smooth(0.86, 0.83, c.y) * (np.abs(c.x - 0.39) < 0.065) * c.noise(50, 3, 4) * 1.2, 0, 0.7), "#20232c")
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.60, 0.30, 0.026), (0.66, 0.27, 0.020), (0.90, 0.24, 0.022))]), "#3d3448")


@scene("victoria-falls")
def victoria_falls(c):
    c.gradient((0, "#3f86c8"), (0.35, "#b8d9ee"), (1, "#e8f2f6"))
    sky.cumulus(c, 0.25, 0.17, 0.34)
    sky.cumulus(c, 1.20, 0.13, 0.40)
    plain = 0.275 + 0.006 * c.line_noise(20, 4)
    land.flat(c, plain, "#7f9a5c", "#5f7f45", 0.06)
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, 0.282 + c.rng.uniform(-0.004, 0.01), 0.030, 0.014, 26) for x in np.linspace(0, 1.5, 60)]), "#4b6b38")
    lip = 0.335 + 0.035 * (c.x[0] / c.aspect) + 0.005 * c.line_noise(34, 4)
    c.blend(c.below(lip - 0.035), mix("#5d7f8c", "#b7d0d8", c.noise(50, 3, 6)))
    c.blend(c.below(lip - 0.035) * smooth(0.60, 0.70, c.noise(22, 4, 3)), "#45663a")
    rock = ramp(np.clip(c.noise(36, 5, 0.3) * 1.3 - 0.15, 0, 1), (0, "#17140f"), (0.5, "#40372c"), (1, "#6d604c"))
    c.blend(c.below(lip), rock)
    c.blend(c.below(lip) * smooth(0.58, 0.72, c.noise(26, 5)) * 0.8, "#3f5a2c")
    strand = c.noise(70, 4, 0.035)
    curtain = smooth(0.34, 0.50, np.interp(c.x[0], np.linspace(0, c.aspect, 60), c.rng.uniform(0.15, 1, 60))[None, :] + 0.20 * (c.noise(12, 4, 0.12) - 0.3))
    shine = np.clip(strand * 1.6 - 0.25 + 0.15, 0, 1)
    c.blend(c.below(lip) * curtain * smooth(0.95, 0.4, c.y), mix("#86aabb", "#ffffff", shine))
    c.blend(smooth(0.012, 0, np.abs(c.y - lip[None, :] - 0.006)) * curtain * 0.6, "#9fd6cf")
    sky.mist(c, 0.80, 0.17, "#f3f9fb", 0.95, cells=5, stretch=1.4, patchy=0.45)
    sky.plume(c, 0.95, 0.74, 0.62, 0.20, "#ffffff", "#c9d8e2", lean=-0.10, opacity=0.55, start=0.10)
    sky.plume(c, 0.45, 0.76, 0.46, 0.15, "#ffffff", "#c9d8e2", lean=-0.08, opacity=0.45, start=0.09)
    sky.rainbow(c, 0.78, 1.02, 0.52, 0.062, 0.60, clip=smooth(0.95, 0.72, c.y) * smooth(0.18, 0.5, c.y) * smooth(1.45, 1.0, c.x))
    for base, tint, size in ((0.90, "#3b5f30", 0.075), (0.965, "#24401f", 0.10), (1.03, "#142a14", 0.12)):
        dip = 0.12 * np.exp(-((c.x[0] - 0.70) / 0.34) ** 2)
        c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, base + float(dip[c.column(x)]) - c.rng.uniform(0, 0.05) - 0.07 * abs(x - 0.7), size, size * 0.6, 110, 0.14)
                                    for x in np.linspace(0, 1.5, 24)]), tint)
    c.blend(c.mask(lambda pen: life.palm(pen, c.rng, 0.16, 1.0, 0.42, 0.14)), "#10240f")


@scene("dead-sea")
def dead_sea(c):
    c.gradient((0, "#5aa3d8"), (0.30, "#c2dfee"), (0.42, "#efe3d2"), (1, "#efe3d2"))
    sky.glow(c, 1.12, 0.02, 0.40, "#fff7dd", 0.8)
    sky.clouds(c, "#ffffff", "#c8d8e6", 0.04, 0.22, cover=0.34, cells=4, stretch=7, opacity=0.5)
    for y, height, lit, dark, amount in ((0.375, 0.040, "#dcb9a2", "#c3a3a0", 0.75), (0.40, 0.035, "#d3a486", "#a98a8c", 0.6), (0.425, 0.028, "#c99672", "#967672", 0.45)):
        line = land.ridge(c, y, height, 3, 7)
        land.range_of(c, line, lit, dark, 1, haze="#efe0d0", haze_depth=0.07, haze_amount=amount, detail=0.9)
    horizon = 0.452
    land.water(c, horizon, "#19b5b0", "#5f9fc4", mirror=0.30, ripple=0.02, near_mirror=0.05, scale=0.8)
    t = np.clip((c.y - horizon) / (1 - horizon), 0, 1) * np.ones_like(c.x)
    shallow = land.perspective_noise(c, horizon, 0.35, 9, 4)
    c.blend((c.y > horizon) * smooth(0.42, 0.66, shallow + 0.25 * t - 0.10) * 0.75, "#8fe8d8")
    c.blend((c.y > horizon) * smooth(0.62, 0.70, shallow + 0.12 * t - 0.12) * 0.8, "#d9fbf0")
    gap, tone = land.crackle(c, horizon, 7.0, 2.0, 1.6)
    caustic = smooth(0.12, 0.0, gap) * t * smooth(0.30, 0.55, shallow)
    c.add(caustic * 0.30, "#eafff6")

    def salt(pen, shift=0.0, shrink=1.0):
        rng = np.random.default_rng(7)
        for _ in range(64):
            k = rng.random() ** 0.8
            y = 0.60 + 0.40 * k
            x = 0.75 + (rng.random() - 0.5) * (0.35 + 0.9 * k) - 0.10 * np.sin(k * 7)
            size = (0.012 + 0.065 * k) * rng.uniform(0.5, 1.15) * shrink
            for _ in range(6):
                pen.oval(x + rng.normal(0, 0.6) * size, y - shift * size * 3 + rng.normal(0, 0.16) * size, size * 0.62, size * 0.27)
    under = c.mask(lambda pen: salt(pen, -0.08, 1.14), 0.004)
    c.blend(under * 0.55, "#6fd6cc")
    crust = c.mask(salt, 0.0015)
    rough = c.noise(110, 3)
    lumps = c.noise(34, 4)
    gy, gx = np.gradient(lumps)
    c.blend(crust, mix("#a9c6cf", "#ffffff", np.clip(0.72 + (gx - gy) * 18 + (rough - 0.5) * 0.6, 0, 1)))
    c.blend(np.clip(crust - np.roll(crust, -6, 0), 0, 1) * 0.6, "#5fa9b0")


@scene("ha-long")
def karst_bay(c):
    c.gradient((0, "#8fb0b8"), (0.35, "#dfe3d2"), (0.55, "#f6e7c4"), (1, "#f6e7c4"))
    sky.sun(c, 1.06, 0.23, 0.040, "#fffbe8", "#ffe2a8", 0.36, 0.65)
    horizon = 0.60
    rows = ((0.600, "#c3cfc4", [(0.10, 0.40, 0.07), (0.22, 0.45, 0.08), (0.62, 0.37, 0.06), (0.72, 0.43, 0.07), (0.92, 0.46, 0.08), (1.22, 0.41, 0.07), (1.38, 0.45, 0.09)]),
            (0.603, "#93aba2", [(0.02, 0.33, 0.10), (0.36, 0.30, 0.065), (0.45, 0.42, 0.07), (0.84, 0.40, 0.06), (1.14, 0.35, 0.07), (1.30, 0.31, 0.065), (1.47, 0.39, 0.08)]),
            (0.607, "#5b7d72", [(0.17, 0.22, 0.085), (0.24, 0.36, 0.07), (0.55, 0.45, 0.05), (1.03, 0.43, 0.05), (1.40, 0.25, 0.09)]))
    for i, (base, tint, summits) in enumerate(rows):
        line = land.peaks(c, base, summits, rough=0.013, cells=40, curve=0.42)
        on = c.below(line) * (line[None, :] < base - 0.012) * (c.y < horizon + 0.003)
        light = land.facets(c, line, 1, spread=0.25, detail=0.9, ribs=50)
        c.blend(on, mix(tint, tuple(mix(tint, "#ffe9bd", np.float32(0.40))), light))
        c.blend(on * smooth(0.57, 0.72, c.noise(26, 5, 0.5)) * (0.12 + 0.22 * i), "#e6dcc0")
        sky.mist(c, 0.575, 0.035, "#f3ead0", 0.62 - 0.12 * i, patchy=0.5)
    land.water(c, horizon, "#1f6b62", "#b9cbb4", mirror=0.68, ripple=0.040, near_mirror=0.32)
    land.glitter(c, horizon, 1.06, 0.055, "#fff6d8", 0.7, bottom=0.95)
    near = land.peaks(c, 0.72, [(-0.02, 0.06, 0.21), (0.10, 0.22, 0.16), (0.17, 0.40, 0.12)], rough=0.016, cells=40, curve=0.45)
    on = c.below(near) * (near[None, :] < 0.70) * (c.y < 0.716)
    light = land.facets(c, near, 1, spread=0.25, detail=1.0, ribs=46)
    c.blend(on, mix("#1d3a2e", "#53764c", light))
    c.blend(on * smooth(0.56, 0.68, c.noise(20, 5, 0.4)) * 0.75, mix("#5f6a5a", "#c9c2a4", light))
    c.blend(on * smooth(0.690, 0.712, c.y) * 0.8, "#16241e")
    c.blend((c.y > 0.712) * (c.x < 0.30) * smooth(0.97, 0.712, c.y) * smooth(0.30, 0.20, c.x) * 0.62, "#15352c")
    built.junk(c, 0.80, 0.745, 0.30, "#3b1d14", "#cf5f28")
    shade = c.noise(40, 3, 5)
    c.blend(smooth(0.90, 0.748, c.y) * (c.y > 0.748) * smooth(0.17, 0.06, np.abs(c.x - 0.80)) * smooth(0.35, 0.6, shade) * 0.6, "#7a3a1c")
    built.junk(c, 0.50, 0.628, 0.085, "#4a3020", "#d98a52")
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.62, 0.16, 0.026), (0.70, 0.13, 0.020), (0.67, 0.20, 0.018))]), "#4d5a55")


@scene("neko-harbour")
def antarctica(c):
    c.gradient((0, "#4f78ae"), (0.30, "#b8c4dc"), (0.48, "#f7d9cf"), (1, "#f7d9cf"))
    sky.clouds(c, "#ffe9df", "#8b9cc0", 0.0, 0.30, cover=0.52, cells=4, stretch=5, opacity=0.85)
    horizon = 0.545
    back = land.Terrain(c, (0.47, 0.56), [(0.16, 0.2, 0.36, 0.38), (0.52, 0.1, 0.28, 0.34), (0.80, 0.3, 0.42, 0.42), (1.10, 0.2, 0.30, 0.36), (1.38, 0.3, 0.46, 0.46)], front=0.35)
    back.paint("#8b8798", "#4d5673", "#e8d6da", 0.45)
    back.cover(-0.2, "#fff4ee", "#8da5d2", 0.02, 3.6)
    front = land.Terrain(c, (0.52, 0.575), [(0.0, 0.4, 0.16, 0.36), (0.62, 0.5, 0.10, 0.30), (1.22, 0.4, 0.13, 0.36), (1.55, 0.5, 0.16, 0.3)], rough=0.25, front=0.5)
    front.paint("#fdf6f2", "#8ba4d4")
    cliff = 0.515 + 0.010 * c.line_noise(30, 4)
    c.blend(c.below(cliff) * smooth(0.45, 0.6, c.noise(8, 3, 3)), ramp(c.noise(50, 3, 0.2), (0.2, "#3f86c0"), (0.6, "#d6ecf8"), (1, "#ffffff")))
    sky.mist(c, 0.50, 0.018, "#fdeee8", 0.5)
    land.water(c, horizon, "#1a3f63", "#8ea9c8", mirror=0.80, ripple=0.022, near_mirror=0.50)

    def bits(pen):
        for _ in range(46):
            k = c.rng.random() ** 1.4
            x, y, size = c.rng.uniform(0, 1.5), 0.57 + 0.26 * k, (0.003 + 0.012 * k) * c.rng.uniform(0.4, 1.3)
            pen.polygon([(x - size, y), (x - size * 0.4, y - size * 0.7), (x + size * 0.4, y - size * 0.5), (x + size, y)])
    c.blend(c.mask(bits), "#eaf6fc")

    def berg(points, base, seed_cells):
        body = c.mask(lambda pen: pen.polygon(points))
        xs = [p[0] for p in points]
        block = c.ridged(seed_cells / 4, 4, 0.7)
        lit = np.clip(np.gradient(block, axis=1) * c.h / 22 + 0.45 + (0.5 - (c.x - min(xs)) / (max(xs) - min(xs))) * 0.7, 0, 1)
        depth = np.clip((c.y - min(p[1] for p in points)) / (base - min(p[1] for p in points)), 0, 1)
        c.blend(body, mix("#5f9fd0", "#ffffff", np.clip(lit * 0.8 + 0.25 - depth * 0.10, 0, 1)))
        c.blend(body * smooth(0.74, 1.0, depth) * 0.7, "#58c0dc")
        below = (c.y > base) * smooth(base + 0.055, base, c.y) * smooth(min(xs) - 0.01, min(xs) + 0.03, c.x) * smooth(max(xs) + 0.01, max(xs) - 0.03, c.x)
        c.blend(below * (0.45 + 0.4 * c.noise(40, 3, 5)), "#3fa6c4")
    berg([(0.78, 0.690), (0.80, 0.600), (0.85, 0.545), (0.885, 0.560), (0.93, 0.455), (0.975, 0.430), (1.01, 0.520), (1.07, 0.560), (1.15, 0.610), (1.19, 0.690)], 0.690, 30)
    berg([(0.40, 0.600), (0.41, 0.570), (0.47, 0.560), (0.53, 0.566), (0.56, 0.600)], 0.600, 30)
    berg([(1.30, 0.635), (1.32, 0.600), (1.36, 0.575), (1.42, 0.600), (1.45, 0.635)], 0.635, 30)

    shore = 0.90 - 0.13 * smooth(0.9, 0.0, c.x[0]) + 0.015 * c.line_noise(4, 4, sharp=False)
    drifts = c.noise(7, 5, 2.4)
    c.blend(c.below(shore), mix("#a3b7dc", "#fffaf6", np.clip(np.gradient(drifts, axis=0) * c.h / 9 + 0.62, 0, 1)))
    c.blend(c.below(shore) * smooth(0.70, 0.82, c.noise(26, 4, 2)) * 0.9, "#4c4a52")
    spots = ((0.12, 0.865, 0.085), (0.19, 0.885, 0.090), (0.26, 0.860, 0.075), (0.36, 0.905, 0.095), (0.07, 0.915, 0.095), (0.52, 0.925, 0.080), (0.60, 0.935, 0.085))
    c.blend(c.mask(lambda pen: [life.penguin(pen, *spot) for spot in spots]), "#1c2130")
    for x, y, size in spots:
        c.blend(c.mask(lambda pen: pen.oval(x + size * 0.05, y - size * 0.40, size * 0.10, size * 0.29)), "#f4f2ee")
        c.blend(c.mask(lambda pen: pen.line([(x - size * 0.07, y - size * 0.93), (x + size * 0.10, y - size * 0.93)], size * 0.05)), "#f4f2ee")
        c.shape([(x + size * 0.11, y - size * 0.89), (x + size * 0.24, y - size * 0.85), (x + size * 0.11, y - size * 0.83)], "#e2602c")


@scene("bora-bora")
def lagoon(c):
    c.gradient((0, "#1f7fd0"), (0.30, "#7cc4ec"), (0.46, "#d3eef6"), (1, "#d3eef6"))
    sky.cumulus(c, 0.22, 0.40, 0.44, "#ffffff", "#a5c6e0", puffs=34)
    sky.cumulus(c, 1.32, 0.41, 0.40, "#ffffff", "#a5c6e0", puffs=34)
    sky.cumulus(c, 0.98, 0.18, 0.20, "#ffffff", "#b5d2e8")
    horizon = 0.485
    base = 0.497
    island = land.Terrain(c, (base - 0.02, base), [(0.66, 0.4, 0.36, 0.15), (0.755, 0.4, 0.33, 0.13), (0.84, 0.5, 0.20, 0.20), (0.55, 0.5, 0.16, 0.22), (0.40, 0.6, 0.09, 0.26), (1.02, 0.5, 0.10, 0.26)],
                          span=0.5, rough=0.32, cells=8, curve=0.95, front=0.3)
    island.shown *= island.altitude > 0.001
    island.paint("#8fb653", "#1f5238")
    island.cover(0.20, "#a08d78", "#3b3a3c", 0.06, 9)
    island.cover(0.17, "#7fa848", "#24502f", 0.06, 3.0)
    sky.haze(c, 0.30, 0.50, "#cfe9f2", 0.35)
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, 0.482, 0.022, 0.010, 22) for x in np.concatenate([np.linspace(0.0, 0.34, 16), np.linspace(1.12, 1.5, 16)])]), "#2f6b3e")
    c.blend((c.y > horizon - 0.004) * (c.y < horizon) * ((c.x < 0.36) | (c.x > 1.10)), "#f6edd0")
    t = np.clip((c.y - horizon) / (1 - horizon), 0, 1) * np.ones_like(c.x)
    body = ramp(t, (0, "#0e5fae"), (0.07, "#1486c4"), (0.22, "#18b7cf"), (0.55, "#4fdcd0"), (0.85, "#a9f2de"), (1, "#d9fae8"))
    wave = land.perspective_noise(c, horizon, 1.0)
    c.blend(c.y > horizon, body * (1 + (wave[..., None] - 0.5) * 0.14))
    reef = land.perspective_noise(c, horizon, 0.30, 8, 5)
    c.blend((c.y > horizon + 0.012) * smooth(0.62, 0.76, reef) * (0.55 - 0.25 * t), "#0f6f94")
    c.blend((c.y > horizon + 0.012) * smooth(0.38, 0.26, reef) * 0.45, "#c9f7e6")
    gap, _ = land.crackle(c, horizon, 9.0, 1.0, 1.8)
    c.add((c.y > horizon) * smooth(0.14, 0.0, gap) * smooth(0.30, 1.0, t) * 0.40, "#f2fffa")
    for x, y, size in ((1.00, 0.545, 0.050), (1.10, 0.560, 0.058), (1.215, 0.580, 0.068), (1.35, 0.606, 0.082)):
        built.stilts(c, x, y, size * 1.5, size * 0.45, "#4a3626", 6)
        c.shape([(x - size * 0.55, y), (x + size * 0.55, y), (x + size * 0.55, y - size * 0.5), (x - size * 0.55, y - size * 0.5)], "#8a6440")
        c.shape([(x - size * 0.80, y - size * 0.42), (x - size * 0.22, y - size * 1.25), (x + size * 0.22, y - size * 1.25), (x + size * 0.80, y - size * 0.42)], "#c9a468")
        c.darken(c.mask(lambda pen: pen.polygon([(x + size * 0.05, y - size * 0.42), (x + size * 0.12, y - size * 1.25), (x + size * 0.22, y - size * 1.25), (x + size * 0.80, y - size * 0.42)])), 0.28)
        c.blend((c.y > y + size * 0.42) * smooth(y + size * 1.3, y + size * 0.42, c.y) * smooth(size * 0.9, size * 0.5, np.abs(c.x - x)) * c.noise(46, 3, 4) * 0.7, "#2a7f8c")
    c.shape([(0.96, 0.575), (1.5, 0.672), (1.5, 0.690), (0.96, 0.582)], "#7a5a3c")
    beach = 0.93 - 0.10 * smooth(0.75, 0.0, c.x[0]) + 0.010 * c.line_noise(3, 3, sharp=False)
    land.flat(c, beach, "#fdf0cf", "#ecd3a0", 0.12)
    c.blend(smooth(0.012, 0, np.abs(c.y - beach[None, :] + 0.006)) * 0.8, "#ffffff")
    c.blend(c.mask(lambda pen: pen.polygon([(0.0, 0.93), (0.40, 0.945), (0.52, 0.965), (0.3, 0.96), (0.0, 0.955)]), 0.006) * 0.35, "#8a7a5c")
    c.blend(c.mask(lambda pen: (life.palm(pen, c.rng, 0.055, 0.93, 0.62, 0.34), life.palm(pen, c.rng, 0.00, 0.95, 0.46, 0.18))), "#173d2a")

    def canoe(pen):
        pen.polygon([(0.56, 0.742), (0.60, 0.752), (0.76, 0.752), (0.80, 0.740), (0.77, 0.766), (0.59, 0.766)])
        pen.line([(0.62, 0.782), (0.76, 0.782)], 0.006)
        pen.line([(0.64, 0.755), (0.645, 0.782)], 0.003)
        pen.line([(0.73, 0.755), (0.735, 0.782)], 0.003)
    c.blend(np.roll(c.mask(canoe, 0.003), 40, 0) * 0.4, "#0f7f94")
    c.blend(c.mask(canoe), "#b5452a")
    c.blend(c.mask(lambda pen: life.person(pen, 0.69, 0.757, 0.062)), "#3c2a22")


@scene("moraine-lake")
def moraine_lake(c):
    c.gradient((0, "#4a86c4"), (0.30, "#b8d3ea"), (0.5, "#fde6cf"), (1, "#fde6cf"))
    sky.clouds(c, "#ffe7d2", "#a9b6d2", 0.0, 0.22, cover=0.42, cells=4, stretch=5, opacity=0.7)
    horizon = 0.60
    back = land.Terrain(c, (0.50, 0.61), [(0.10, 0.3, 0.42, 0.30), (0.32, 0.2, 0.36, 0.27), (0.53, 0.3, 0.42, 0.28), (0.72, 0.2, 0.33, 0.24), (0.90, 0.3, 0.40, 0.27), (1.09, 0.2, 0.34, 0.26)],
                        span=0.7, rough=0.32, light=1, front=0.25, slope=0.45)
    back.paint("#b3a59c", "#465074", "#c3cee0", 0.40)
    back.cover(0.10, "#fff6ee", "#8b9cc6", 0.08, 3.2)
    c.blend(back.shown * smooth(0.26, 0.40, back.altitude) * back.light * 0.5, "#ffb27a")
    side = land.Terrain(c, (0.54, 0.62), [(1.46, 0.5, 0.52, 0.46), (1.22, 0.6, 0.24, 0.26)], rough=0.32, light=1, front=0.25)
    side.shown *= side.altitude > 0.004
    side.paint("#9d918b", "#3a4462", "#a9b4c8", 0.30)
    side.cover(0.24, "#f6ebe4", "#7f90b8", 0.08, 3.0)
    scree = land.peaks(c, 0.60, [(0.0, 0.44, 0.40), (1.55, 0.42, 0.45)], rough=0.014)
    c.blend(c.below(scree), mix("#4f5568", "#9a8f8c", land.facets(c, scree, 1, detail=0.8)))
    life.conifers(c, lambda x: 0.605 - 0.05 * abs(x - 0.75), 170, 0.055, "#33513f")
    life.conifers(c, lambda x: 0.610 - 0.03 * abs(x - 0.75), 120, 0.060, "#223d30")
    land.water(c, horizon + 0.004, "#1296a8", "#3fb8c0", mirror=0.52, ripple=0.020, near_mirror=0.16, shadow=0.06)
    bank = 0.86 + 0.015 * c.line_noise(6, 5) - 0.04 * np.abs(c.x[0] - 0.75)
    stones, tone = land.crackle(c, 0.62, 16, 4.0)
    body = mix("#4a4644", "#a89c90", np.clip(tone * 0.8 + (c.noise(60, 3) - 0.5) * 0.4, 0, 1)) * (0.55 + 0.6 * smooth(0.0, 0.30, stones))[..., None]
    c.blend(c.below(bank), body)
    for x, y, length, tilt in ((0.55, 0.895, 0.42, -0.018), (0.75, 0.93, 0.50, 0.03), (0.30, 0.955, 0.36, -0.04)):
        c.shape([(x - length / 2, y - tilt), (x + length / 2, y + tilt), (x + length / 2, y + tilt + 0.020), (x - length / 2, y - tilt + 0.026)], "#7d6a5a")
        c.shape([(x - length / 2, y - tilt + 0.014), (x + length / 2, y + tilt + 0.012), (x + length / 2, y + tilt + 0.022), (x - length / 2, y - tilt + 0.028)], "#453a34")
    c.blend(c.mask(lambda pen: [life.conifer(pen, c.rng, x, y, h) for x, y, h in ((0.06, 0.97, 0.62), (0.17, 0.95, 0.46), (-0.02, 1.0, 0.5), (0.26, 0.93, 0.26))]), "#12251f")
    c.blend(c.mask(lambda pen: [life.conifer(pen, c.rng, x, y, h) for x, y, h in ((1.46, 1.0, 0.74), (1.36, 0.97, 0.50), (1.27, 0.95, 0.30))]), "#12251f")

    def canoe(pen):
        pen.polygon([(0.90, 0.735), (0.925, 0.746), (1.03, 0.746), (1.06, 0.733), (1.035, 0.760), (0.925, 0.760)])
    c.blend(np.roll(c.mask(canoe), 34, 0) * 0.35, "#6a2218")
    c.blend(c.mask(canoe), "#d8362a")
    c.blend(c.mask(lambda pen: (life.person(pen, 0.955, 0.757, 0.048), life.person(pen, 1.01, 0.757, 0.046))), "#2a2a34")
