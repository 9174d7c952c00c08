"""The table of scenes, by the name of the picture file."""

from .canvas import Canvas

LANDSCAPE, PORTRAIT = (960, 640), (640, 960)
SCENES = {}


def scene(name, size=LANDSCAPE, **finish):
    """Enters a function that draws on a fresh canvas into the table."""
    def enter(draw):
        def render():
            canvas = Canvas(*size, name)
            draw(canvas)
            return canvas.picture(**finish)
        SCENES[name] = render
        return draw
    return enter
