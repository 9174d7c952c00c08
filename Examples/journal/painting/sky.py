"""Sun, moon, stars, clouds, aurora, mist and smoke."""

import numpy as np
from PIL import Image

from .canvas import mix, ramp, smooth


def glow(c, x, y, radius, colour, strength=1.0, squash=1.0):
    c.add(strength * np.exp(-(c.distance(x, y, squash) / radius) ** 1.3), colour)


def disc(c, x, y, radius, colour):
    c.blend(np.clip((radius - c.distance(x, y)) * c.h + 0.5, 0, 1), colour)


def sun(c, x, y, radius, colour="#fff3d0", halo="#ffc070", reach=0.28, strength=0.75):
    glow(c, x, y, reach, halo, strength)
    glow(c, x, y, radius * 2.2, colour, 0.55)
    disc(c, x, y, radius, colour)


def stars(c, count=900, lowest=0.7, brightness=1.0):
    """Stars of many magnitudes, a few of them with a small halo."""
    light = np.zeros((c.h, c.w), dtype=np.float32)
    xs, ys = c.rng.integers(2, c.w - 3, count), c.rng.integers(2, max(4, int(lowest * c.h)), count)
    power = c.rng.power(0.35, count)
    for x, y, p in zip(xs, ys, power):
        light[y:y + 2, x:x + 2] = np.maximum(light[y:y + 2, x:x + 2], 0.25 + 0.75 * p)
        if p > 0.93:
            light[y - 1:y + 3, x - 1:x + 3] = np.maximum(light[y - 1:y + 3, x - 1:x + 3], 0.6)
    fade = smooth(lowest, lowest * 0.55, c.y)
    c.add(light * brightness * fade, "#f4f6ff")


def milky_way(c, start, end, width, strength=0.8):
    """The band of the galaxy from `start` to `end`, with dust lanes down its middle."""
    (x0, y0), (x1, y1) = start, end
    length = np.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    wander = (c.noise(3, 4) - 0.5) * width * 1.4
    across = (c.x - x0) * -uy + (c.y - y0) * ux + wander
    along = (c.x - x0) * ux + (c.y - y0) * uy
    band = np.exp(-(across / width) ** 2) * (0.45 + 0.55 * np.exp(-((along / length - 0.28) / 0.3) ** 2))
    cloud = c.noise(9, 6)
    dust = smooth(0.46, 0.80, c.noise(9, 7, persistence=0.6)) * np.exp(-(across / (width * 0.42)) ** 2)
    c.add(strength * band * (0.35 + 0.8 * cloud), "#b9b0d8")
    c.add(strength * 0.8 * np.exp(-(across / (width * 0.45)) ** 2) * np.exp(-((along / length - 0.25) / 0.24) ** 2), "#f1cfa6")
    c.darken(dust * band, 0.55)
    specks = (c.rng.random((c.h // 2, c.w // 2)) < 0.012).astype(np.float32) * c.rng.random((c.h // 2, c.w // 2))
    specks = np.repeat(np.repeat(specks, 2, 0), 2, 1)
    c.add(specks * band * 0.9, "#ffffff")


def aurora(c, curtains, colour="#46f09a", crown="#8a5cff"):
    """Curtains given as (knots of (x, y), height, strength); light climbs from each lower edge in rays."""
    for knots, height, strength in curtains:
        knots = np.array(knots)
        edge = np.interp(c.x[0], knots[:, 0], knots[:, 1])
        sway = c.line_noise(5, 3, sharp=False) * 0.025
        edge = edge + sway
        rays = 0.55 + 0.45 * c.line_noise(46, 4, 0.7, sharp=False)
        veil = 0.6 + 0.4 * c.line_noise(4, 2, sharp=False)
        tall = height * (0.65 + 0.5 * np.clip(rays, 0, 1))
        up = (edge[None, :] - c.y) / tall[None, :]
        body = np.where(up > 0, np.exp(-2.6 * np.clip(up, 0, None)), np.exp(-(np.clip(-up, 0, None) * 7) ** 2))
        body = body * np.clip(rays * veil, 0.05, 1)[None, :] * strength
        ends = smooth(knots[0, 0], knots[0, 0] + 0.15, c.x) * smooth(knots[-1, 0], knots[-1, 0] - 0.15, c.x)
        tint = ramp(np.clip(up, 0, 1.2), (0, colour), (0.35, colour), (0.8, crown), (1.2, crown))
        c.px = 1 - (1 - np.clip(c.px, 0, 1)) * (1 - np.clip(body * ends, 0, 1)[..., None] * tint)
        glow_line = np.exp(-((c.y - edge[None, :] + height * 0.2) / (height * 1.1)) ** 2)
        c.add(0.22 * strength * glow_line * ends, colour)


def clouds(c, lit, shade, top, bottom, cover=0.5, cells=5, stretch=3.5, opacity=0.9, light=(-6, -6), softness=0.22):
    """Drawn-out clouds between two heights, bright on the side that `light` (pixels) points to."""
    field = c.noise(cells, 6, stretch)
    band = smooth(top - 0.06, top + 0.10, c.y) * smooth(bottom + 0.04, bottom - 0.08, c.y)
    threshold = 1 - cover
    density = smooth(threshold, threshold + softness, field * (0.55 + 0.45 * band)) * band
    rows = np.clip(np.arange(c.h) + light[1] * 2, 0, c.h - 1)
    columns = np.clip(np.arange(c.w) + light[0] * 2, 0, c.w - 1)
    towards = field[rows[:, None], columns[None, :]]
    brightness = np.clip(0.5 + (field - towards) * 6, 0, 1)
    c.blend(density * opacity, mix(shade, lit, brightness))


def cumulus(c, x, y, width, lit="#ffffff", shade="#a9bed6", light=(-0.5, -0.8), puffs=26):
    """One heaped cloud standing on a flat base at `y`."""
    height = width * 0.42
    field = np.zeros((c.h, c.w), dtype=np.float32)
    warp = (c.noise(16, 6) - 0.5) * width * 0.13
    for _ in range(puffs):
        along = np.clip(c.rng.normal(0, 0.24), -0.5, 0.5)
        rise = c.rng.random() * max(0.05, 1 - (along / 0.52) ** 2)
        radius = width * c.rng.uniform(0.07, 0.15) * (1.25 - 0.5 * rise)
        px, py = x + along * width, y - rise * height * 0.75 - radius * 0.2
        distance = np.sqrt((c.x - px) ** 2 + (c.y - py) ** 2) + warp
        puff = np.clip(1 - (distance / radius) ** 2, 0, 1) * radius / width * 9
        field = np.maximum(field, puff) * 0.75 + (field + puff) * 0.25 * (puff > 0) + field * 0.25 * (puff <= 0)
    soft = np.asarray(Image.fromarray(field.astype(np.float32)).resize((c.w // 8, c.h // 8)).resize((c.w, c.h), Image.Resampling.BICUBIC))
    gy, gx = np.gradient(soft)
    bright = 0.5 + (gx * light[0] + gy * light[1]) * -9
    lift = smooth(y + height * 0.05, y - height * 0.75, c.y)
    bright = np.clip(bright * 0.55 + lift * 0.70, 0, 1)
    mask = smooth(0.02, 0.30, field) * smooth(y + 0.016, y - 0.016, c.y + warp * 0.5)
    c.blend(mask * 0.96, mix(shade, lit, bright))


def mist(c, y, thickness, colour, opacity=0.8, cells=4, stretch=4.0, patchy=0.5):
    """A bank of mist centred at height `y`."""
    band = np.exp(-((c.y - y) / thickness) ** 2)
    field = (1 - patchy) + patchy * smooth(0.25, 0.7, c.noise(cells, 5, stretch))
    c.blend(band * field * opacity, colour)


def haze(c, top, bottom, colour, opacity=0.6):
    """Air that thickens downwards from `top` to `bottom` and fills the rest."""
    c.blend(smooth(top, bottom, c.y) * opacity, colour)


def plume(c, x, y, height, spread, lit, shade, lean=0.1, opacity=0.9, start=0.01):
    """Smoke or steam rising from (x, y)."""
    field = np.zeros((c.h, c.w), dtype=np.float32)
    tint = np.zeros((c.h, c.w), dtype=np.float32)
    warp = (c.noise(22, 5) - 0.5) * 0.05
    for step in np.linspace(0, 1, 34):
        radius = start + spread * step ** 0.8
        for _ in range(2):
            px = x + lean * step ** 1.3 + c.rng.normal(0, 0.45) * radius
            py = y - height * step + c.rng.normal(0, 0.3) * radius
            size = radius * c.rng.uniform(0.5, 0.95)
            puff = np.sqrt(np.clip(1 - ((c.distance(px, py) + warp * (0.3 + step)) / size) ** 2, 0, 1))
            side = np.clip(0.5 - (c.x - px) / size * 0.4 - (c.y - py) / size * 0.45, 0, 1)
            tint = np.where(puff > 0, tint * (1 - puff) + side * puff, tint)
            field = np.maximum(field, puff * (1 - 0.75 * step ** 2))
    c.blend(smooth(0.02, 0.55, field) * opacity, mix(shade, lit, tint))


def rays(c, x, y, colour, strength=0.3, count=22, reach=1.2):
    """Beams of light that fan out from (x, y)."""
    angle = np.arctan2(c.y - y, c.x - x)
    turns = np.linspace(-np.pi, np.pi, 720)
    beams = np.clip(np.interp(turns, np.linspace(-np.pi, np.pi, count * 4), c.rng.uniform(-0.7, 1, count * 4)), 0, 1)
    light = np.interp(angle, turns, beams) * np.clip(1 - c.distance(x, y) / reach, 0, 1)
    c.add(light * strength, colour)


def rainbow(c, x, y, radius, width=0.05, strength=0.35, clip=None):
    t = (c.distance(x, y) - radius) / width
    bow = ramp(t, (-0.5, "#6a4cff"), (-0.25, "#3aa0ff"), (0, "#4fe06a"), (0.22, "#ffe84f"), (0.5, "#ff4f3a"))
    mask = smooth(-0.62, -0.25, t) * smooth(0.62, 0.25, t) * strength
    if clip is not None:
        mask = mask * clip
    c.px = 1 - (1 - np.clip(c.px, 0, 1)) * (1 - mask[..., None] * bow)


def moon(c, x, y, radius, colour="#fdf6e0", halo="#9fb4d8"):
    glow(c, x, y, radius * 7, halo, 0.4)
    disc(c, x, y, radius, colour)
    spots = smooth(0.5, 0.65, c.noise(40, 3)) * np.clip((radius - c.distance(x, y)) * c.h, 0, 1)
    c.darken(spots, 0.10)
