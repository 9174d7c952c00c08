"""Ridges, dunes, snow, water, ice and surf."""

import numpy as np
from PIL import Image

from .canvas import blur_line, mix, ramp, rgb, smooth


def ridge(c, y, height, cells=4, octaves=7, persistence=0.5, sharp=True):
    """The skyline of a range: one y for each column, around `y`."""
    return y - height * c.line_noise(cells, octaves, persistence, sharp)


def peaks(c, y, summits, rough=0.02, cells=18, octaves=6, sharp=True, curve=1.0):
    """A skyline with summits at given places: (x, top, half width), over ground at `y`. No two flanks are alike."""
    line = np.full(c.w, float(y))
    for x, top, half in summits:
        left, right = half * c.rng.uniform(0.80, 1.25, 2)
        bend = curve * c.rng.uniform(0.85, 1.2, 2)
        away = c.x[0] - x
        slope = np.where(away < 0, np.clip(1 + away / left, 0, 1) ** bend[0], np.clip(1 - away / right, 0, 1) ** bend[1])
        line = np.minimum(line, y - (y - top) * slope)
    lift = np.clip((y - line) / 0.08, 0.25, 1)
    wobble = c.line_noise(cells, octaves, 0.55, sharp) + 1.1 * c.line_noise(cells * 0.45, 2, 0.5, sharp)
    return (line - rough * lift * wobble).astype(np.float32)


def facets(c, profile, light=-1.0, spread=0.55, cells=5, detail=0.8, smoothing=0.010, ribs=None):
    """Light (0...1) on the faces under a skyline: its own shoulders at the top, spurs and gullies that run downhill below."""
    depth = np.maximum(c.y - profile[None, :], 0)
    cells = ribs / 6 if ribs else cells
    warp = c.noise(cells, 3) - 0.5
    broad = np.gradient(blur_line(profile, smoothing * c.w)) * c.w / c.aspect
    at = np.clip((c.x + warp * (0.02 + depth * spread * 0.6)) / c.aspect * (c.w - 1), 0, c.w - 1).astype(np.int32)
    slope = np.clip(broad[at], -1.6, 1.6)
    rock = c.noise(cells * 1.6, 5, 0.42, 0.42)
    shade = np.gradient(rock, axis=1) * c.h / (cells * 5)
    weight = 0.35 + 0.65 * np.exp(-depth / 0.16)
    return smooth(-0.75, 0.75, light * (slope * 0.55 * weight - detail * 1.5 * shade)).astype(np.float32)


class Terrain:
    """Ground with hills and valleys, seen a little from above: summits as (x, depth, height, radius), depth 0 far and 1 near.

    `y` is the height on the canvas of the plain at the far and at the near end; `shown` says where the ground is in the picture.
    """

    def __init__(self, c, y, summits, span=0.8, rough=0.30, cells=5, curve=1.15, light=-1.0, front=0.35, slope=0.55, warp=0.55, steps=640):
        self.c = c
        lines = Image.Resampling.BICUBIC
        x, depth = c.x, np.linspace(0, 1, steps, dtype=np.float32)[:, None]

        def field(noise):
            return np.asarray(Image.fromarray(noise).resize((c.w, steps), lines))
        warp_x, warp_z = field(c.noise(5, 5)) - 0.5, field(c.noise(5, 5)) - 0.5
        crests = field(c.ridged(cells, 1)) * 0.55 + field(c.ridged(cells * 2.1, 1)) * 0.27 + field(c.noise(cells * 4, 6, persistence=0.52)) * 0.40
        ground = np.zeros((steps, c.w), dtype=np.float32)
        for sx, sz, height, radius in summits:
            away = np.hypot(x - sx + warp_x * radius * warp, (depth - sz) * span + warp_z * radius * warp)
            ground = np.maximum(ground, height * np.clip(1 - away / radius, 0, 1) ** curve)
        tall = max(s[2] for s in summits)
        ground = (ground + rough * (crests - 0.55) * (0.10 * tall + 0.75 * ground)) * smooth(1.0, 0.72, depth)
        run_x, run_z = np.gradient(ground, axis=1) * c.w / c.aspect, np.gradient(ground, axis=0) * steps / span
        lamp = np.array([light, 0.62, front])
        lamp = lamp / np.linalg.norm(lamp)
        shine = (-run_x * lamp[0] + lamp[1] - run_z * lamp[2]) / np.sqrt(run_x ** 2 + run_z ** 2 + 1)
        reach = ground + (x if light < 0 else c.aspect - x) * slope
        horizon = np.maximum.accumulate(reach if light < 0 else reach[:, ::-1], axis=1)
        horizon = horizon if light < 0 else horizon[:, ::-1]
        cast = smooth(0.002, 0.014, horizon - reach)
        shine = smooth(0.02, 0.95, shine * (1 - 0.80 * cast))
        seen = y[0] + (y[1] - y[0]) * depth - ground
        nearest_first = np.minimum.accumulate(seen[::-1], axis=0)
        rows = c.y[:, 0]
        pick = np.zeros((c.h, c.w), dtype=np.float32)
        for column in range(c.w):
            line = nearest_first[:, column]
            index = np.searchsorted(-line, -rows)
            low = np.clip(index - 1, 0, steps - 1)
            high = np.clip(index, 0, steps - 1)
            gap = line[low] - line[high]
            pick[:, column] = low + np.where(gap > 1e-6, (line[low] - rows) / np.maximum(gap, 1e-6), 0)
        at = np.clip(steps - 1 - pick, 0, steps - 1)
        lower, part = np.floor(at).astype(np.int32), at - np.floor(at)
        upper, columns = np.minimum(lower + 1, steps - 1), np.arange(c.w)[None, :]

        def view(values):
            return (values[lower, columns] * (1 - part) + values[upper, columns] * part).astype(np.float32)
        self.skyline = nearest_first[-1].astype(np.float32)
        self.shown = c.below(self.skyline) * np.clip((y[1] - c.y) * c.h, 0, 1)
        self.light, self.altitude, self.steep, self.depth = view(shine), view(ground), view(np.hypot(run_x, run_z)), at / (steps - 1)

    def paint(self, lit, shade, haze=None, amount=0.5, gamma=1.0):
        colour = mix(shade, lit, self.light ** gamma)
        if haze is not None:
            colour = colour + (rgb(haze) - colour) * (amount * (1 - self.depth))[..., None]
        self.c.blend(self.shown, colour)

    def cover(self, above, lit, shade, ragged=0.05, steepest=1.6, below=None, opacity=1.0, cells=16):
        """Snow, grass or scree between two altitudes, where the ground is not too steep."""
        field = (self.c.noise(cells, 5) - 0.5) * 2
        where = smooth(above - ragged, above + ragged, self.altitude + field * ragged)
        if below is not None:
            where = where * smooth(below + ragged, below - ragged, self.altitude + field * ragged)
        where = where * smooth(steepest + 0.5, steepest - 0.3, self.steep + field * 0.35)
        self.c.blend(self.shown * where * opacity, mix(shade, lit, self.light))


def range_of(c, profile, lit, shade, light=-1.0, haze=None, haze_depth=0.3, haze_amount=0.0, **shape):
    """Fills the ground under a skyline with lit and shaded faces, sinking into `haze` below. Returns the light on it."""
    brightness = facets(c, profile, light, **shape)
    colour = mix(shade, lit, brightness)
    if haze is not None:
        depth = np.clip((c.y - profile[None, :]) / haze_depth, 0, 1) * haze_amount
        colour = colour + (rgb(haze) - colour) * depth[..., None]
    c.blend(c.below(profile), colour)
    return brightness


def snow(c, profile, line, brightness, lit="#ffffff", shade="#8fa6c8", depth=0.25, ragged=0.10, cover=0.75):
    """Snow above the height `line`, thinning towards it, more on the shoulders than in the steep gullies."""
    field = c.noise(14, 6) - 0.5
    streaks = c.noise(30, 4, 0.35) - 0.5
    amount = smooth(line + ragged, line - ragged, c.y + (field * 0.9 + streaks * 0.7) * ragged * 2)
    bare = smooth(cover, cover + 0.22, 0.5 + streaks * 0.9 + field * 0.5)
    c.blend(c.below(profile) * amount * (1 - bare * 0.85), mix(shade, lit, brightness))


def flat(c, profile, top, bottom=None, depth=0.3):
    """Fills the ground under a line with one colour, or a gradient over `depth`."""
    if bottom is None:
        c.blend(c.below(profile), top)
    else:
        c.blend(c.below(profile), ramp((c.y - profile[None, :]) / depth, (0, top), (1, bottom)))


def texture(c, profile, colour, cells=40, stretch=3.0, low=0.55, high=0.8, opacity=0.5, octaves=4):
    c.blend(c.below(profile) * smooth(low, high, c.noise(cells, octaves, stretch)) * opacity, colour)


def _fold(values, size):
    values = np.mod(values, 2 * size)
    return np.clip(np.where(values < size, values, 2 * size - 1 - values), 0, size - 1).astype(np.int32)


def perspective_noise(c, horizon, scale=1.0, cells=24, octaves=4):
    """Noise drawn out into waves on a level plane that recedes towards `horizon`; meaningless above it."""
    tile = c.noise(cells, octaves)
    t = np.maximum((c.y - horizon) / (1 - horizon), 1e-3)
    u = (c.x - c.aspect / 2) / (t + 0.10) ** 0.75 * scale * 0.22 * c.h
    v = -np.log(t + 0.025) * scale * 0.62 * c.h * np.ones_like(c.x)
    return tile[_fold(v + 9 * c.h, c.h), _fold(u + 3.37 * c.w, c.w)]


def water(c, horizon, near, far=None, mirror=0.7, ripple=0.02, bottom=None, near_mirror=None, scale=1.0, shadow=0.10):
    """Water from `horizon` down: the picture above mirrored and rippled over the water's own colour."""
    end = np.full(c.w, 1.0) if bottom is None else bottom
    t = np.clip((c.y - horizon) / (1 - horizon), 0, 1)
    wave = perspective_noise(c, horizon, scale) - 0.5
    swell = perspective_noise(c, horizon, scale * 0.45) - 0.5
    shift = ripple * (0.12 + t ** 0.7) * (wave * 1.1 + swell)
    rows = (2 * horizon - c.y + shift * 2.4) * (c.h - 1)
    columns = (c.x + shift) / c.aspect * (c.w - 1)
    rows = np.where(rows > horizon * (c.h - 1), horizon * (c.h - 1) - 1, rows)
    image = c.px[_fold(np.maximum(rows, -rows), c.h), _fold(columns, c.w)]
    body = mix(far if far is not None else near, near, t ** 0.6 * np.ones_like(c.x))
    near_mirror = mirror * 0.6 if near_mirror is None else near_mirror
    share = (mirror + (near_mirror - mirror) * t) * np.ones_like(c.x)
    colour = body + (image - body) * share[..., None]
    colour = colour * (1 + (wave * shadow * 2)[..., None])
    on = (c.y >= horizon) * (1 - c.below(end) if bottom is not None else 1)
    c.blend(on, colour)


def glitter(c, horizon, x, width, colour, strength=0.8, bottom=1.0, scale=1.0, spread=1.6):
    """The path of light under a sun, moon or lamp on rippled water."""
    t = np.clip((c.y - horizon) / max(bottom - horizon, 1e-3), 0, 1)
    wave = perspective_noise(c, horizon, scale * 1.25)
    reach = width * (0.45 + spread * t)
    nearness = np.exp(-((c.x - x) / reach) ** 2)
    sparkle = smooth(0.60 - 0.22 * nearness, 0.80 - 0.22 * nearness, wave)
    c.add((c.y > horizon) * (c.y < bottom) * nearness * sparkle * strength * (1 - 0.35 * t), colour)


def surf(c, y, colour="#ffffff", amplitude=0.02, width=0.02, opacity=0.9, slope=0.0, cells=3):
    """One line of foam along a beach. Returns its profile."""
    line = y + slope * (c.x[0] / c.aspect - 0.5) + amplitude * c.line_noise(cells, 4, 0.45, sharp=False)
    lace = c.noise(46, 4, 2.0)
    behind = line[None, :] - c.y
    crest = smooth(-0.0015, 0.0015, behind) * smooth(width, 0, behind)
    c.blend(crest * np.clip(0.35 + 1.3 * (lace - 0.35) + 0.8 * smooth(width * 0.4, 0, behind), 0, 1) * opacity, colour)
    return line


def crackle(c, horizon, cells, seed_shift=0.0, stretch=1.0):
    """Distances to the two nearest of many scattered points on a receding plane: (gap between them, tone of the cell)."""
    t = np.maximum((c.y - horizon) / (1 - horizon), 2e-3)
    z = 1 / (t + 0.06)
    u = ((c.x - c.aspect / 2) * z * cells / stretch + 37.5 + seed_shift).astype(np.float32)
    v = (z * cells * 1.1 * np.ones_like(c.x)).astype(np.float32)
    table = c.rng.random((64, 64, 3), dtype=np.float32)
    iu, iv = np.floor(u).astype(np.int32), np.floor(v).astype(np.int32)
    first = np.full(u.shape, 9.0, dtype=np.float32)
    second, tone = first.copy(), np.zeros_like(first)
    for du in (-1, 0, 1):
        for dv in (-1, 0, 1):
            point = table[(iu + du) % 64, (iv + dv) % 64]
            distance = np.hypot(iu + du + point[..., 0] - u, iv + dv + point[..., 1] - v)
            nearer = distance < first
            second = np.where(nearer, first, np.minimum(second, distance))
            tone = np.where(nearer, point[..., 2], tone)
            first = np.where(nearer, distance, first)
    return second - first, tone


def dune(c, crest, lit, shade, light=-1, lean=0.25, wander=0.10, depth=0.5, rim="#ffd9a0"):
    """A dune under `crest`: one face in the light, the other in shadow, parted by an edge that snakes down from the top."""
    top = int(np.argmin(crest))
    x_top = float(c.x[0, top])
    depth_here = np.maximum(c.y - crest[top], 0)
    snake = wander * blur_line(np.interp(np.linspace(0, 1, c.h), np.linspace(0, 1, 9), c.rng.uniform(-1, 1, 9)), c.h / 16)
    edge = x_top + lean * depth_here + (snake[:, None] - snake[int(crest[top] * (c.h - 1))]) * np.clip(depth_here * 4, 0, 1)
    side = smooth(-0.004, 0.004, (edge - c.x) * -light)
    fall = np.clip((c.y - crest[None, :]) / depth, 0, 1)
    colour = mix(shade, lit, side)
    colour = colour * (1.06 - 0.28 * fall[..., None])
    ripples = (c.noise(90, 2, 0.6) - 0.5) * 0.05
    colour = colour * (1 + ripples[..., None] * side[..., None])
    c.blend(c.below(crest), colour)
    c.blend(c.below(crest) * np.exp(-((edge - c.x) / 0.004) ** 2) * 0.5 * (fall < 0.9), rim)
