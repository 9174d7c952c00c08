"""Mountains, volcanoes, the northern lights and a forest."""

import numpy as np

from . import built, land, life, sky
from .canvas import mix, ramp, smooth
from .scene import PORTRAIT, scene


@scene("kawaguchi-2019", grain=0)
def fuji(c):
    c.gradient((0, "#6f86c0"), (0.22, "#b9a5cc"), (0.42, "#f4b8ae"), (0.56, "#ffe0b8"), (1, "#ffe0b8"))
    horizon = 0.585
    sky.clouds(c, "#ffd9cc", "#b79fc4", 0.20, 0.44, cover=0.36, cells=4, stretch=8, opacity=0.6)
    cone = land.Terrain(c, (0.52, 0.575), [(0.84, 0.45, 0.50, 0.84)], span=1.5, rough=0.045, cells=12, curve=1.75, light=-1, front=0.15, slope=0.2, warp=0.05)
    crater = 0.560 - 0.395 + 0.005 * c.line_noise(60, 3)
    cone.shown *= c.below(np.maximum(cone.skyline, crater).astype(np.float32))
    cone.paint("#a08cb8", "#4c4c80", "#e8b8bc", 0.30)
    streaks = c.noise(30, 5, 0.30)
    fan = np.interp(np.arctan2(c.x - 0.84, np.maximum(c.y - 0.06, 0.01)), np.linspace(-1.6, 1.6, 160), c.rng.uniform(0, 1, 160))
    cap = smooth(0.345, 0.300, c.y - 0.14 * (fan - 0.5) - 0.06 * (streaks - 0.5)) * cone.shown
    c.blend(cap, mix("#9aa0d4", "#fff1ea", cone.light))
    sky.haze(c, 0.46, 0.62, "#ffd9c0", 0.60)
    for y, height, tint in ((0.555, 0.020, "#8d7fa6"), (0.572, 0.016, "#6a6691")):
        land.flat(c, land.ridge(c, y, height, 4, 6, sharp=False), tint)
    sky.mist(c, 0.570, 0.012, "#ffe6d2", 0.8)
    land.water(c, horizon, "#56639a", "#f0bfb4", mirror=0.90, ripple=0.014, near_mirror=0.74, shadow=0.04)
    sky.haze(c, 0.75, 1.1, "#2f3c70", 0.45)

    def boughs(pen, flowers):
        rng = np.random.default_rng(11)
        for x, y, angle, length in ((-0.04, 0.20, 1.75, 0.22), (-0.04, 0.02, 1.95, 0.30), (0.20, -0.05, 2.2, 0.20), (-0.03, 0.40, 1.45, 0.14)):
            tips = []
            life.branch(pen if not flowers else Blank(), rng, x, y, angle, length, 0.014, 4, 0.45, 0.72, 0.3, tips)
            if flowers:
                for tx, ty in tips:
                    for _ in range(9):
                        px, py, r = tx + rng.normal(0, 0.020), ty + rng.normal(0, 0.016), rng.uniform(0.005, 0.010)
                        for k in range(5):
                            pen.oval(px + r * np.sin(k * 1.257), py + r * np.cos(k * 1.257), r * 0.75)
    c.blend(c.mask(lambda pen: boughs(pen, False)), "#3a2434")
    petals = c.mask(lambda pen: boughs(pen, True))
    c.blend(np.roll(petals, 6, 0), "#c9749c")
    c.blend(petals, ramp(c.noise(60, 3), (0.25, "#f3a5c0"), (0.7, "#ffe3ec")))

    def boat(pen):
        pen.polygon([(1.10, 0.752), (1.26, 0.752), (1.235, 0.768), (1.125, 0.768)])
        life.person(pen, 1.17, 0.757, 0.060)
        pen.line([(1.175, 0.72), (1.235, 0.70)], 0.003)
    c.blend(c.mask(boat), "#2a2848")


class Blank:
    """A pen that leaves no mark."""

    def line(self, *_):
        pass

    oval = polygon = box = line


@scene("bromo")
def bromo(c):
    c.gradient((0, "#2c3a70"), (0.20, "#7a6aa0"), (0.34, "#f0937a"), (0.44, "#ffd28c"), (1, "#ffd28c"))
    sky.stars(c, 120, 0.22, 0.6)
    sky.clouds(c, "#ffc79a", "#8a6a96", 0.10, 0.36, cover=0.42, cells=5, stretch=7, opacity=0.75)
    sky.glow(c, -0.05, 0.42, 0.55, "#ffb060", 0.65)
    semeru = land.Terrain(c, (0.46, 0.52), [(1.02, 0.4, 0.31, 0.46)], rough=0.10, cells=8, curve=1.25, light=-1, front=0.1)
    semeru.paint("#c58f9a", "#564f86", "#f0a890", 0.45)
    sky.plume(c, 1.02, 0.20, 0.13, 0.045, "#ffdcc0", "#9a7f9e", lean=0.10, start=0.008)
    land.flat(c, np.full(c.w, 0.56, np.float32), "#f0c0b0", "#b895ac", 0.36)
    rim = land.Terrain(c, (0.46, 0.58), [(0.30, 0.3, 0.15, 0.30), (0.72, 0.2, 0.13, 0.30), (1.42, 0.4, 0.18, 0.34), (0.02, 0.4, 0.14, 0.28)], rough=0.35, cells=8, light=-1, front=0.1)
    rim.paint("#c08a86", "#4a4272", "#e09a8c", 0.45)
    sky.mist(c, 0.56, 0.055, "#f6c4b4", 0.92, cells=5, stretch=3.5, patchy=0.35)
    batok = land.Terrain(c, (0.56, 0.72), [(0.98, 0.5, 0.30, 0.36)], span=0.7, rough=0.16, cells=13, curve=0.95, light=-1, front=0.1, slope=0.35, warp=0.10)
    batok.shown *= smooth(0.0, 0.02, batok.altitude) * c.below(np.maximum(batok.skyline, 0.390 + 0.006 * c.line_noise(30, 3)).astype(np.float32))
    batok.paint("#b98a62", "#38324f", "#d89a86", 0.15)
    batok.cover(0.01, "#8f9a58", "#333a46", 0.05, 1.6, below=0.24, opacity=0.40)
    crater = land.Terrain(c, (0.56, 0.72), [(0.50, 0.5, 0.235, 0.40), (0.30, 0.5, 0.16, 0.32)], span=0.7, rough=0.10, cells=14, curve=0.90, light=-1, front=0.1, slope=0.35, warp=0.18)
    crater.shown *= smooth(0.0, 0.02, crater.altitude) * c.below(np.maximum(crater.skyline, 0.478 + 0.010 * c.line_noise(14, 4) + 0.02 * np.abs(c.x[0] - 0.46)).astype(np.float32))
    crater.paint("#c9a08c", "#4a4058", "#d89a86", 0.15)
    sky.plume(c, 0.47, 0.490, 0.36, 0.105, "#ffe9d8", "#94809c", lean=0.16, start=0.030, opacity=0.92)
    sky.mist(c, 0.745, 0.060, "#f3cfc4", 0.95, cells=5, stretch=3.0, patchy=0.30)
    sky.mist(c, 0.655, 0.028, "#f7d3c4", 0.60, cells=6, stretch=3.5, patchy=0.65)
    sky.mist(c, 0.86, 0.07, "#b99aac", 0.95, cells=4, stretch=3.0, patchy=0.3)
    slope = 0.955 - 0.15 * smooth(0.9, 1.5, c.x[0]) - 0.10 * smooth(0.45, 0.0, c.x[0]) + 0.008 * c.line_noise(20, 4)
    land.flat(c, slope, "#2a2a3c", "#15151f", 0.15)
    life.conifers(c, lambda x: float(slope[c.column(x)]) + 0.012, 34, 0.11, "#1d2030", 0.95, 1.5)
    life.conifers(c, lambda x: float(slope[c.column(x)]) + 0.012, 20, 0.09, "#1d2030", 0.0, 0.45)


@scene("stromboli", PORTRAIT)
def stromboli(c):
    c.gradient((0, "#060915"), (0.4, "#121a33"), (0.72, "#2a2f4c"), (1, "#2a2f4c"))
    sky.stars(c, 1100, 0.74, 0.9)
    sky.milky_way(c, (0.05, 0.62), (0.60, -0.1), 0.10, 0.35)
    horizon = 0.765
    vent = (0.385, 0.345)
    sky.glow(c, *vent, 0.26, "#ff5a1e", 0.75)
    sky.plume(c, vent[0], vent[1], 0.36, 0.11, "#ff8b4a", "#3a2430", lean=-0.17, opacity=0.75, start=0.02)
    cone = land.Terrain(c, (0.70, 0.79), [(0.33, 0.4, 0.43, 0.46), (0.44, 0.5, 0.33, 0.40)], span=0.6, rough=0.12, cells=12, curve=0.95, light=-1, front=0.2, warp=0.22)
    cone.shown *= (cone.altitude > 0.003) * (c.y < horizon + 0.004)
    cone.paint("#2a3048", "#080a12")
    near = np.exp(-(c.distance(*vent) / 0.16) ** 1.2)
    c.add(cone.shown * near * (0.35 + 0.65 * cone.light), "#ff5a20")
    for path, strength in (([(0.385, 0.36), (0.415, 0.43), (0.405, 0.50), (0.450, 0.58), (0.465, 0.68), (0.485, 0.765)], 1.0),
                           ([(0.392, 0.36), (0.430, 0.44), (0.455, 0.50), (0.490, 0.60)], 0.7)):
        lava = c.mask(lambda pen: pen.line(path, 0.010), 0.0025)
        broken = smooth(0.30, 0.55, c.noise(50, 3))
        c.add(c.mask(lambda pen: pen.line(path, 0.022), 0.012) * 0.7 * strength, "#ff3a0a")
        c.add(lava * broken * strength, "#ffae4a")

    def bombs(pen):
        for _ in range(210):
            angle, speed = c.rng.normal(0.02, 0.34), c.rng.uniform(0.15, 1.0) ** 0.7
            vx, vy, end = np.sin(angle) * speed * 0.30, np.cos(angle) * speed * 0.62, c.rng.uniform(0.35, 1.25)
            ts = np.linspace(max(0, end - 0.35), end, 10)
            pen.line([(vent[0] + vx * t, vent[1] - vy * t + 0.42 * t * t) for t in ts], c.rng.uniform(0.0008, 0.0024))
    c.add(c.mask(bombs, 0.006) * 1.0, "#ff4a10")
    c.add(c.mask(bombs), "#ffc96a")
    sky.glow(c, vent[0], vent[1] - 0.005, 0.035, "#fff0c0", 0.95)
    land.water(c, horizon, "#070c1c", "#151d36", mirror=0.75, ripple=0.05, near_mirror=0.5)
    land.glitter(c, horizon, 0.41, 0.035, "#ff7a30", 0.85)

    def boat(pen):
        pen.polygon([(0.09, 0.853), (0.20, 0.853), (0.185, 0.867), (0.105, 0.867)])
        pen.box(0.120, 0.838, 0.155, 0.854)
        pen.line([(0.142, 0.852), (0.142, 0.795)], 0.002)
    c.blend(c.mask(boat), "#04060c")
    sky.glow(c, 0.142, 0.797, 0.014, "#fff4d0", 0.9)
    for x in np.linspace(0.13, 0.25, 9):
        sky.glow(c, x, 0.757 + c.rng.uniform(-0.006, 0.004), 0.006, "#ffd890", 0.9)


@scene("amboseli")
def amboseli(c):
    c.gradient((0, "#86b4dc"), (0.35, "#d9e0e6"), (0.56, "#ffe3b8"), (1, "#ffe3b8"))
    sky.glow(c, 0.0, 0.55, 0.55, "#ffdc9a", 0.6)
    mountain = land.Terrain(c, (0.53, 0.60), [(0.78, 0.45, 0.44, 1.05), (0.98, 0.45, 0.30, 0.7), (0.36, 0.45, 0.27, 0.30)], span=1.5, rough=0.06, cells=10, curve=1.20, light=-1, front=0.2, slope=0.15, warp=0.10)
    top = np.where(c.x[0] > 0.52, 0.205 + 0.25 * np.clip(np.abs(c.x[0] - 0.78) - 0.14, 0, 1) + 0.004 * c.line_noise(30, 4), 0)
    mountain.shown *= c.below(np.maximum(mountain.skyline, top).astype(np.float32))
    mountain.paint("#8fa0bf", "#5a6c98", "#c9d2de", 0.35)
    ice = smooth(0.285, 0.235, c.y + (c.noise(26, 5, 0.5) - 0.5) * 0.12) * mountain.shown * smooth(0.36, 0.26, np.abs(c.x - 0.78))
    c.blend(ice, mix("#b9c9e4", "#ffffff", mountain.light))
    sky.haze(c, 0.36, 0.60, "#e9dcc8", 0.75)
    sky.clouds(c, "#ffffff", "#b3bdd0", 0.37, 0.50, cover=0.62, cells=6, stretch=6, opacity=0.9)
    plain = 0.595 + 0.004 * c.line_noise(18, 4)
    c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, 0.592, 0.03, 0.010, 24) for x in np.linspace(0, 1.5, 44)]), "#8d9a80")
    land.flat(c, plain, "#d9b878", "#a3722e", 0.40)
    grass = land.perspective_noise(c, 0.58, 1.0, 30)
    c.blend(c.below(plain) * smooth(0.40, 0.75, grass) * 0.45, "#7c6a2c")
    c.blend(c.below(plain) * smooth(0.62, 0.80, land.perspective_noise(c, 0.58, 0.5, 14)) * 0.5, "#f0d493")
    c.blend(c.mask(lambda pen: [life.acacia(pen, c.rng, x, y, h) for x, y, h in ((0.12, 0.625, 0.075), (0.44, 0.615, 0.055), (1.08, 0.618, 0.06), (0.90, 0.610, 0.045))]), "#5f6a48")
    herd = ((0.52, 0.715, 0.085, 1), (0.68, 0.705, 0.066, 1), (0.785, 0.722, 0.090, 1), (0.93, 0.712, 0.045, 1), (0.40, 0.705, 0.070, 1))
    c.blend(c.mask(lambda pen: [pen.polygon([(x - size * 0.4, y), (x + size * 0.5, y), (x + size * 2.6, y + size * 0.5), (x + size * 1.6, y + size * 0.55)]) for x, y, size, _ in herd], 0.003) * 0.40, "#5a4220")
    beasts = c.mask(lambda pen: [life.elephant(pen, *spot) for spot in herd])
    c.blend(beasts, "#4d463f")
    c.blend(beasts * smooth(0.0, 6.0, np.clip(beasts - np.roll(beasts, 9, 1), 0, 1) * 6) * 0.8, "#c9a878")
    for x, y, size, facing in herd:
        if size > 0.05:
            c.blend(c.mask(lambda pen: pen.oval(x + 0.42 * size * facing, y - 0.73 * size, size * 0.14, size * 0.24)), "#3c3630")
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.70, 0.62, 0.014), (0.86, 0.60, 0.012), (0.50, 0.63, 0.012))]), "#fbf7ea")
    c.blend(c.mask(lambda pen: life.acacia(pen, c.rng, 1.22, 0.86, 0.46, 0.66)), "#2c2a1a")

    def blades(pen):
        for _ in range(900):
            x, y = c.rng.uniform(0, 1.5), c.rng.uniform(0.93, 1.03)
            h = c.rng.uniform(0.02, 0.07)
            pen.line([(x, y), (x + c.rng.normal(0, 0.012), y - h)], 0.0016)
    c.blend(c.mask(blades), "#6a4f1e")
    c.blend(c.mask(blades), "#c79a48")


@scene("kala-patthar")
def kala_patthar(c):
    c.gradient((0, "#1d3a78"), (0.30, "#5f83bc"), (0.55, "#d9b8c4"), (0.7, "#f0c8b4"), (1, "#f0c8b4"))
    everest = land.Terrain(c, (0.58, 0.70), [(0.58, 0.3, 0.42, 0.52), (0.40, 0.2, 0.27, 0.34), (0.80, 0.25, 0.24, 0.30)], span=0.7, rough=0.16, cells=7, curve=0.95, light=1, front=0.8, slope=0.5)
    everest.paint("#b5705a", "#3c3c6c", "#b7a6c8", 0.22)
    everest.cover(0.10, "#ffc08a", "#6a74b4", 0.10, 1.9, cells=10)
    sky.plume(c, 0.60, 0.205, 0.02, 0.05, "#ffe2c8", "#d0b4c8", lean=0.26, opacity=0.5, start=0.006)
    nuptse = land.Terrain(c, (0.60, 0.76), [(1.00, 0.5, 0.56, 0.52), (1.24, 0.5, 0.42, 0.44), (1.48, 0.5, 0.36, 0.4)], span=0.7, rough=0.22, cells=7, curve=0.95, light=1, front=0.8, slope=0.5)
    nuptse.paint("#c07a58", "#33345f", "#9a8cb4", 0.20)
    nuptse.cover(0.12, "#ffcf9e", "#6270b0", 0.10, 2.6)
    west = land.Terrain(c, (0.62, 0.77), [(0.04, 0.5, 0.40, 0.46), (0.28, 0.6, 0.22, 0.30)], span=0.7, rough=0.26, cells=7, light=1, front=0.6)
    west.paint("#a8705c", "#2e3058", "#9a8cb4", 0.20)
    west.cover(0.13, "#ffc79a", "#5f6cab", 0.10, 2.2)
    c.darken(smooth(0.50, 0.72, c.y + 0.05 * (c.noise(4, 4) - 0.5)) * 0.55, 0.75)
    c.blend(smooth(0.55, 0.74, c.y) * 0.35, "#3a4478")
    glacier = land.Terrain(c, (0.70, 0.88), [(0.2, 0.5, 0.06, 0.4), (0.9, 0.5, 0.07, 0.5)], span=0.8, rough=0.9, cells=16, light=1, front=0.3)
    glacier.shown *= smooth(0.68, 0.74, c.y)
    glacier.paint("#7d7f98", "#2a2d4e")
    glacier.cover(0.0, "#c3c9e4", "#59639c", 0.03, 1.0)
    slope = 0.845 - 0.09 * smooth(0.8, 0.0, c.x[0]) + 0.07 * smooth(0.7, 1.5, c.x[0]) + 0.012 * c.line_noise(14, 6)
    gap, tone = land.crackle(c, 0.50, 26, 2.0)
    c.blend(c.below(slope), mix("#17161f", "#6a5850", np.clip(tone * 0.8 + (c.noise(50, 4) - 0.5) * 0.9, 0, 1) * smooth(0, 0.45, gap)))
    c.blend(c.below(slope) * smooth(0.03, 0.0, c.y - slope[None, :]) * 0.35, "#c98f6a")
    cairn = [(0.235, 0.790, 0.050, 0.020), (0.240, 0.765, 0.040, 0.017), (0.232, 0.742, 0.032, 0.015), (0.238, 0.722, 0.022, 0.013)]
    c.blend(c.mask(lambda pen: [pen.oval(*stone) for stone in cairn]), "#2a2629")
    c.blend(c.mask(lambda pen: [pen.oval(x + 0.006, y - 0.006, rx * 0.7, ry * 0.45) for x, y, rx, ry in cairn]), "#8a6a58")
    c.blend(c.mask(lambda pen: pen.line([(0.238, 0.80), (0.238, 0.60)], 0.006)), "#2a2629")
    built.prayer_flags(c, (-0.02, 0.52), (0.238, 0.605), 0.03, 8, 0.036)
    built.prayer_flags(c, (0.238, 0.605), (0.98, 0.935), 0.030, 24, 0.036)
    built.prayer_flags(c, (0.238, 0.612), (0.56, 1.02), 0.022, 14, 0.038)


@scene("zhangjiajie", PORTRAIT)
def zhangjiajie(c):
    c.gradient((0, "#a9c3cc"), (0.35, "#dfe8e4"), (1, "#f1f1e6"))
    sky.glow(c, 0.55, 0.10, 0.45, "#fff6dc", 0.7)
    layers = ((0.55, 0.22, 0.050, "#bccac8", "#cfd9d4", 7), (0.70, 0.22, 0.062, "#92aaa4", "#b9c2b4", 6), (0.90, 0.26, 0.075, "#5f7c70", "#a08f78", 5), (1.10, 0.20, 0.105, "#2f4c40", "#8f7358", 3))
    for number, (base, top, girth, wood, stone, count) in enumerate(layers):
        xs = np.linspace(-0.02, c.aspect + 0.02, count) + c.rng.uniform(-0.05, 0.05, count)
        if number == 3:
            xs = np.array([0.02, 0.41, 0.70])
        for x in xs:
            height = top + c.rng.uniform(-0.02, 0.30) if number < 3 else {0: 0.36, 1: 0.17, 2: 0.46}[int(np.argmin(np.abs(xs - x)))]
            half = girth * c.rng.uniform(0.65, 1.15)
            foot = 1.1
            ys = np.linspace(height, foot, 50)
            wide = half * (0.80 + 0.30 * np.linspace(0, 1, 50) ** 1.4)
            edge_l = x - wide * (1 + 0.16 * np.interp(ys, np.linspace(height, foot, 30), c.rng.uniform(-1, 1, 30)))
            edge_r = x + wide * (1 + 0.16 * np.interp(ys, np.linspace(height, foot, 30), c.rng.uniform(-1, 1, 30)))
            body = c.mask(lambda pen: pen.polygon(list(zip(edge_l, ys)) + list(zip(edge_r, ys))[::-1]))
            side = np.clip((c.x - x) / half * 0.5 + 0.5, 0, 1)
            rock = c.noise(24, 4, 0.28)
            beds = c.noise(40, 3, 5.0)
            c.blend(body, mix(tuple(mix(stone, wood, np.float32(0.72))), tuple(mix(stone, "#fff0d4", np.float32(0.22))), np.clip(0.62 - 0.55 * (side - 0.45) + (rock - 0.5) * 1.1, 0, 1)))
            c.blend(body * smooth(0.60, 0.72, beds) * (0.18 + 0.15 * number), wood)
            c.blend(body * smooth(0.64, 0.76, c.noise(16, 5, 0.7)) * (0.35 + 0.10 * number), wood)
            size = half * (0.5 if number < 3 else 0.42)
            c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x + t * half * 0.75, height - size * 0.12, size * 0.75, size * 0.45, 40) for t in np.linspace(-1, 1, 7)]), wood)
            if number >= 2:
                c.blend(c.mask(lambda pen: [life.conifer(pen, c.rng, x + t * half, height + 0.004, half * c.rng.uniform(0.45, 0.8)) for t in c.rng.uniform(-0.8, 0.8, 8)]), wood)
                c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, edge_l[i] if i % 2 else edge_r[i], ys[i], half * 0.22, half * 0.16, 18) for i in c.rng.integers(4, 48, 14)]), wood)
        if number < 3:
            sky.haze(c, base - 0.26, base + 0.06, "#eef2ec", 0.96)
            sky.mist(c, base - 0.20, 0.06, "#f3f6f0", 0.7, cells=6, stretch=2.4, patchy=0.8)
    sky.mist(c, 0.66, 0.035, "#f6f8f2", 0.65, cells=7, stretch=3.0, patchy=0.7)
    sky.haze(c, 0.72, 1.00, "#e9efe8", 0.75)
    c.blend(c.mask(lambda pen: [life.conifer(pen, c.rng, x, 1.02, h) for x, h in zip(np.linspace(0, c.aspect, 16), c.rng.uniform(0.07, 0.17, 16))]), "#142a23")
    c.blend(c.mask(lambda pen: [life.bird(pen, *at) for at in ((0.20, 0.20, 0.028), (0.25, 0.17, 0.022), (0.29, 0.21, 0.018))]), "#3f5650")


@scene("abisko")
def abisko(c):
    c.gradient((0, "#050b20"), (0.45, "#0e2a44"), (0.68, "#1f4f5e"), (1, "#1f4f5e"))
    sky.stars(c, 1100, 0.70, 0.9)
    sky.aurora(c, [([(-0.1, 0.46), (0.25, 0.36), (0.55, 0.42), (0.85, 0.30), (1.2, 0.36), (1.6, 0.20)], 0.30, 0.95),
                   ([(-0.1, 0.22), (0.3, 0.26), (0.7, 0.16), (1.0, 0.20), (1.3, 0.08)], 0.20, 0.55)])
    gate = land.Terrain(c, (0.655, 0.70), [(0.30, 0.4, 0.26, 0.34), (0.52, 0.4, 0.20, 0.22), (1.02, 0.4, 0.24, 0.24), (1.24, 0.4, 0.21, 0.34)], span=0.5, rough=0.10, cells=8, curve=0.75, light=-1, front=0.4)
    dip = 0.655 - 0.16 * np.clip(np.abs(c.x[0] - 0.77) / 0.22, 0, 1) ** 2.2
    gate.shown *= np.where(np.abs(c.x - 0.77) < 0.22, c.below(np.maximum(gate.skyline, dip).astype(np.float32)), 1)
    gate.paint("#8fd0c4", "#16303f", "#1f4f5e", 0.25)
    low = land.Terrain(c, (0.66, 0.74), [(0.05, 0.5, 0.07, 0.4), (0.75, 0.5, 0.045, 0.5), (1.45, 0.5, 0.08, 0.4)], rough=0.25, light=-1, front=0.5)
    low.paint("#8cd9c0", "#1d4654")
    life.conifers(c, lambda x: 0.728 + 0.01 * np.sin(x * 9), 150, 0.045, "#0a1c26")
    field = 0.735 + 0.012 * c.line_noise(3, 4, sharp=False)
    drifts = c.noise(8, 5, 3.2)
    light = np.clip(np.gradient(drifts, axis=0) * c.h / 26 + 0.62, 0, 1)
    c.blend(c.below(field), mix("#1b5560", "#86dcbf", light) * (0.95 - 0.35 * smooth(0.78, 1.0, c.y) * np.ones_like(c.x))[..., None])
    for x, y, size in ((1.08, 0.815, 0.15),):
        c.shape([(x - size * 0.62, y), (x + size * 0.62, y), (x + size * 0.62, y - size * 0.42), (x, y - size * 0.86), (x - size * 0.62, y - size * 0.42)], "#1a1418")
        c.shape([(x, y - size * 0.98), (x + size * 0.78, y - size * 0.40), (x + size * 0.72, y - size * 0.30), (x, y - size * 0.80), (x - size * 0.72, y - size * 0.30), (x - size * 0.78, y - size * 0.40)], "#a9ecd2")
        for dx in (-0.30, 0.28):
            c.shape([(x + (dx - 0.12) * size, y - size * 0.14), (x + (dx + 0.12) * size, y - size * 0.14), (x + (dx + 0.12) * size, y - size * 0.36), (x + (dx - 0.12) * size, y - size * 0.36)], "#ffc766")
            sky.glow(c, x + dx * size, y - size * 0.24, 0.05, "#ff9a3a", 0.55)
            sky.glow(c, x + dx * size, y + 0.035, 0.06, "#ffb060", 0.35, squash=3)
    track = np.abs(c.x - (0.62 + 0.42 * smooth(1.0, 0.82, c.y) + 0.02 * np.sin(c.y * 40))) - (0.002 + 0.022 * smooth(0.80, 1.0, c.y))
    c.blend((c.y > 0.82) * smooth(0.006, -0.006, track) * 0.55, "#123640")
    c.blend(c.mask(lambda pen: life.person(pen, 0.80, 0.885, 0.085)), "#0a141c")
    c.blend(c.mask(lambda pen: [life.conifer(pen, c.rng, x, y, h) for x, y, h in ((0.06, 1.0, 0.46), (0.17, 0.97, 0.32), (0.26, 0.99, 0.20), (1.44, 1.0, 0.40), (1.34, 0.98, 0.24))]), "#071119")


@scene("redwoods", PORTRAIT)
def redwoods(c):
    c.gradient((0, "#e9ecc8"), (0.45, "#d3dcb8"), (0.75, "#8fa67a"), (1, "#3c5230"))
    sky.glow(c, 0.40, 0.16, 0.42, "#fffbe0", 0.8)
    for depth, (tint, girth, count, base) in enumerate((("#b9c4a0", 0.022, 15, 0.72), ("#94a382", 0.030, 11, 0.75), ("#6e7459", 0.042, 8, 0.79), ("#54402f", 0.066, 4, 0.86), ("#3a241b", 0.115, 2, 0.96))):
        xs = np.linspace(0, c.aspect, count) + c.rng.uniform(-0.03, 0.03, count)
        if depth == 4:
            xs = [0.045, 0.60]
        if depth == 3:
            xs = [0.17, 0.29, 0.49, 0.66]
        for x in xs:
            half, lean = girth / 2 * c.rng.uniform(0.8, 1.25), c.rng.uniform(-0.008, 0.008)
            foot = base + c.rng.uniform(-0.012, 0.012)
            flare = half * (1.75 if depth > 2 else 1.4)
            body = c.mask(lambda pen: pen.polygon([(x + lean - half * 0.88, -0.02), (x + lean + half * 0.88, -0.02), (x + half, foot - 0.13), (x + flare, foot), (x - flare, foot), (x - half, foot - 0.13)]))
            c.blend(body, tint)
            if depth > 1:
                bark = c.noise(54 - depth * 6, 4, 0.05)
                c.blend(body * smooth(0.48, 0.70, bark) * (0.25 + 0.12 * depth), tuple(mix(tint, "#120a08", np.float32(0.65))))
                c.blend(body * smooth(0.56, 0.74, c.noise(60 - depth * 6, 4, 0.05)) * 0.5, tuple(mix(tint, "#d98a5a", np.float32(0.55))))
                c.blend(body * smooth(x - half * 0.1, x + half * 1.3, c.x) * 0.45, "#120c0c")
                c.blend(body * smooth(x - half * 0.55, x - half * 1.0, c.x) * 0.55, "#e8b98a")
                c.blend(body * smooth(0.58, 0.70, c.noise(16, 5, 0.6)) * smooth(foot - 0.25, foot, c.y) * 0.8, "#5f7a34")
            if depth < 4:
                def sprays(pen):
                    for _ in range(9):
                        y = c.rng.uniform(0.0, 0.52)
                        side = c.rng.choice((-1, 1))
                        reach = girth * c.rng.uniform(1.0, 2.2)
                        life.foliage(pen, c.rng, x + side * reach * 0.6, y + reach * 0.2, reach * 0.65, reach * 0.16, 26, 0.20)
                c.blend(c.mask(sprays), tuple(mix(tint, "#3c5a2c", np.float32(0.25 + 0.14 * depth))))
        floor = base - 0.035 + 0.012 * c.line_noise(5, 4, sharp=False)
        c.blend(c.below(floor) * 0.92, tuple(mix("#b5c394", "#2c4420", np.float32(depth / 4))))
        c.blend(c.mask(lambda pen: [life.foliage(pen, c.rng, x, base - 0.03 + c.rng.uniform(-0.01, 0.02), 0.05 + 0.01 * depth, 0.022 + 0.006 * depth, 40, 0.2) for x in np.linspace(0, c.aspect, 14)]),
                tuple(mix("#a3b584", "#24401c", np.float32(depth / 4))))
        sky.mist(c, 0.50, 0.30, "#f0f0d4", (0.36, 0.30, 0.22, 0.10, 0.0)[depth], cells=3, stretch=1.5, patchy=0.4)
    path = np.abs(c.x - (0.37 + 0.06 * np.sin((c.y - 0.8) * 9))) - (0.018 + 0.50 * np.clip(c.y - 0.80, 0, 1) ** 1.25)
    c.blend((c.y > 0.80) * smooth(0.010, -0.014, path + (c.noise(30, 4) - 0.5) * 0.03), mix("#5a3f2a", "#b58c62", c.noise(50, 4, 2)))
    c.blend(c.mask(lambda pen: life.person(pen, 0.372, 0.865, 0.060)), "#20242c")
    c.shape([(0.362, 0.815), (0.382, 0.815), (0.381, 0.838), (0.363, 0.838)], "#d8742a")
    for tint, low, count, size in (("#3f6228", 0.97, 9, 0.10), ("#23401a", 1.01, 10, 0.12), ("#122611", 1.05, 8, 0.14)):
        xs = c.rng.uniform(0, c.aspect, count)
        c.blend(c.mask(lambda pen: [life.fern(pen, c.rng, x, low, size * c.rng.uniform(0.7, 1.1)) for x in xs if abs(x - 0.40) > 0.10]), tint)
    sky.rays(c, 0.42, -0.12, "#fff7d0", 0.42, 22, 1.25)
