"""The commands of a guide, for proofs that run what operators are told to run. A command is a code block of a section, and is found by a part of its text."""

import pathlib
import re
import textwrap

GUIDES = pathlib.Path(__file__).resolve().parent.parent.parent / "Documentation" / "Guides"


class GuideChanged(Exception):
    """The guide no longer has a command that the proof runs."""


class GuideSection:
    """A section of a guide, from its heading to the next heading of the same level."""

    def __init__(self, page, heading):
        text = (GUIDES / page).read_text(encoding="utf-8")
        parts = re.split(rf"^{re.escape(heading)}$\n", text, flags=re.M)
        if len(parts) != 2:
            raise GuideChanged(f"{page} has no section «{heading}»")
        level = heading.split(" ")[0]
        section = re.split(rf"^{level} ", parts[1], flags=re.M)[0]
        blocks = re.findall(r"^( *)```\w+\n(.*?)^\1```$", section, flags=re.M | re.S)
        self.page, self.blocks, self.used = page, [textwrap.dedent(text) for _, text in blocks], set()

    def block(self, part, given=None):
        """Returns the one block that contains `part`. `given` maps texts of the block to their replacements; each of these texts must occur in it."""
        found = [number for number, text in enumerate(self.blocks) if part in text]
        if len(found) != 1:
            raise GuideChanged(f"{self.page} has {len(found)} blocks with «{part}», and not one")
        self.used.add(found[0])
        text = self.blocks[found[0]]
        for shown, value in (given or {}).items():
            if shown not in text:
                raise GuideChanged(f"{self.page}: the block with «{part}» has no «{shown}»")
            text = text.replace(shown, str(value))
        return text

    def check_all_used(self):
        left = [text for number, text in enumerate(self.blocks) if number not in self.used]
        if left:
            raise GuideChanged(f"{self.page} has commands that nothing has run:\n{left[0]}")
