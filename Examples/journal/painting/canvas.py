"""A canvas of floating-point pixels with noise, masks, gradients and a mirror.

Units: the height of the canvas is 1, x runs from 0 to `aspect`, y grows downwards. Colours are sRGB in 0...1, written "#rrggbb".
Everything is drawn at twice the final size and scaled down once. The only source of chance is the generator seeded by the picture's name.
"""

import hashlib

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

OVERSAMPLING = 2


def rgb(colour):
    if isinstance(colour, str):
        colour = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return np.asarray(colour, dtype=np.float32)


def mix(a, b, t):
    """Colours `a` and `b` blended by `t`, a number or a field of numbers."""
    t = np.asarray(t, dtype=np.float32)
    return rgb(a) * (1 - t[..., None]) + rgb(b) * t[..., None]


def ramp(t, *stops):
    """The colour at `t` of a gradient through (position, colour) stops."""
    places = [place for place, _ in stops]
    colours = np.array([rgb(colour) for _, colour in stops])
    return np.stack([np.interp(t, places, colours[:, i]) for i in range(3)], axis=-1).astype(np.float32)


def smooth(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def blur_line(values, sigma):
    reach = max(1, int(3 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.convolve(np.pad(values, reach, mode="edge"), kernel / kernel.sum(), mode="valid")


class Canvas:
    def __init__(self, width, height, name):
        self.size = (width, height)
        self.w, self.h = width * OVERSAMPLING, height * OVERSAMPLING
        self.aspect = width / height
        self.x = np.linspace(0, self.aspect, self.w, dtype=np.float32)[None, :]
        self.y = np.linspace(0, 1, self.h, dtype=np.float32)[:, None]
        self.px = np.zeros((self.h, self.w, 3), dtype=np.float32)
        self.rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))

    # Noise

    def noise(self, cells, octaves=5, stretch=1.0, persistence=0.5):
        """Fractal noise in about 0...1 with `cells` cells over the height; `stretch` > 1 draws it out sideways."""
        total, weight, amount = np.zeros((self.h, self.w), dtype=np.float32), 0.0, 1.0
        for _ in range(octaves):
            rows = max(2, int(round(cells))) + 2
            columns = max(2, int(round(cells * self.aspect / stretch))) + 2
            if rows > self.h:
                break
            grid = Image.fromarray(self.rng.random((rows, columns), dtype=np.float32))
            total += amount * np.asarray(grid.resize((self.w, self.h), Image.Resampling.BICUBIC))
            weight += amount
            amount *= persistence
            cells *= 2
        return np.clip((total / weight - 0.5) * 1.6 + 0.5, 0, 1)

    def ridged(self, cells, octaves=5, stretch=1.0, persistence=0.48):
        """Like `noise`, but folded into sharp crests between round hollows."""
        total, weight, amount = np.zeros((self.h, self.w), dtype=np.float32), 0.0, 1.0
        for _ in range(octaves):
            total += amount * (1 - np.abs(2 * self.noise(cells, 1, stretch) - 1))
            weight += amount
            amount *= persistence
            cells *= 2
        return total / weight

    def line_noise(self, cells, octaves=6, persistence=0.5, sharp=True):
        """Fractal noise over x in about -1...1; sharp for rock, rounded for hills and dunes."""
        x = np.linspace(0, 1, self.w)
        total, weight, amount = np.zeros(self.w), 0.0, 1.0
        for _ in range(octaves):
            count = int(round(cells)) + 2
            knots = np.linspace(-0.5 / cells, 1 + 0.5 / cells, count) + self.rng.uniform(-0.3, 0.3, count) / cells
            values = self.rng.uniform(-1, 1, count)
            octave = np.interp(x, knots, values)
            if not sharp:
                octave = blur_line(octave, max(1.0, self.w / cells / 4))
            total += amount * octave
            weight += amount
            amount *= persistence
            cells *= 2
        return (total / weight * 1.6).astype(np.float32)

    # Painting

    def blend(self, mask, colour):
        """Lays `colour` (one, or one for each pixel) over the picture where `mask` is."""
        mask = np.broadcast_to(np.clip(mask, 0, 1), (self.h, self.w))
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if not rows.size:
            return
        part = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        colour = rgb(colour)
        if colour.ndim > 1:
            colour = np.broadcast_to(colour, self.px.shape)[part]
        self.px[part] += (colour - self.px[part]) * mask[part][..., None]

    def add(self, light, colour):
        """Adds light as a screen would: never beyond white."""
        light = np.broadcast_to(np.clip(light, 0, 1), (self.h, self.w))[..., None] * rgb(colour)
        self.px = 1 - (1 - np.clip(self.px, 0, 1)) * (1 - light)

    def darken(self, mask, by):
        self.px *= 1 - by * np.broadcast_to(np.clip(mask, 0, 1), (self.h, self.w))[..., None]

    def gradient(self, *stops):
        self.px[:] = ramp(self.y, *stops)

    def distance(self, x, y, squash=1.0):
        return np.sqrt((self.x - x) ** 2 + ((self.y - y) * squash) ** 2)

    def below(self, profile):
        """A mask of what lies under the line `profile` (one y for each column)."""
        return np.clip((self.y - np.asarray(profile)[None, :]) * self.h + 0.5, 0, 1)

    def mask(self, draw, soft=0.0):
        """A mask drawn with the given function of a `Pen`."""
        image = Image.new("L", (self.w, self.h), 0)
        draw(Pen(image, self.h))
        if soft:
            image = image.filter(ImageFilter.GaussianBlur(soft * self.h))
        return np.asarray(image, dtype=np.float32) / 255

    def shape(self, points, colour, soft=0.0):
        self.blend(self.mask(lambda pen: pen.polygon(points), soft), colour)

    def column(self, x):
        return int(np.clip(x / self.aspect * (self.w - 1), 0, self.w - 1))

    # Finish

    def picture(self, grain=0.010, vignette=0.18):
        px = np.clip(self.px, 0, 1)
        image = Image.fromarray((px * 255 + 0.5).astype(np.uint8)).resize(self.size, Image.Resampling.LANCZOS)
        px = np.asarray(image, dtype=np.float32) / 255
        width, height = self.size
        dx = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
        dy = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
        px = px * (1 - vignette * np.clip((dx * dx + dy * dy) / 2, 0, 1) ** 1.5)[..., None]
        if grain:
            specks = self.rng.normal(0, 1, (height, width)).astype(np.float32)
            px = px + (specks * grain * (0.5 + 0.5 * (1 - np.abs(2 * px.mean(axis=2) - 1))))[..., None]
        return Image.fromarray((np.clip(px, 0, 1) * 255 + 0.5).astype(np.uint8))


class Pen:
    """Draws white on a mask, in the canvas's units."""

    def __init__(self, image, scale):
        self.draw, self.scale = ImageDraw.Draw(image), scale

    def points(self, points):
        return [(float(x) * self.scale, float(y) * self.scale) for x, y in points]

    def polygon(self, points, value=255):
        self.draw.polygon(self.points(points), fill=value)

    def box(self, x0, y0, x1, y1, value=255):
        corners = self.points([(min(x0, x1), min(y0, y1)), (max(x0, x1), max(y0, y1))])
        self.draw.rectangle(corners, fill=value)

    def oval(self, x, y, rx, ry=None, value=255):
        ry = rx if ry is None else ry
        self.draw.ellipse(self.points([(x - rx, y - ry), (x + rx, y + ry)]), fill=value)

    def line(self, points, width, value=255):
        self.draw.line(self.points(points), fill=value, width=max(1, int(round(width * self.scale))), joint="curve")
