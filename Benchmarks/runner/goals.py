"""Figures with goals: how they are judged and printed, and which of them make a program fail."""

import statistics
import sys


def judge(values, meets):
    """Judges the values of the rounds. The result is `yes` if the median meets the goal, `spread` if only some round meets it, so that the miss is
    within the spread, `NO` if no round meets it, and empty if there is no goal."""
    if meets is None:
        return ""
    if meets(statistics.median(values)):
        return "yes"
    return "spread" if any(map(meets, values)) else "NO"


class Goals:
    """Prints figures, and keeps those whose goals are missed by more than their spread."""

    def __init__(self, program, is_smoke=False):
        self.program, self.is_smoke, self.missed, self.count = program, is_smoke, [], 0

    def heading(self):
        if not self.is_smoke:
            print(f"{'figure':<66}{'median':>16}  {'min – max':>21}  goal")

    def line(self, name, values, goal="", meets=None, unit=""):
        """Prints one figure. A smoke test only checks that it has values."""
        if not values:
            sys.exit(f"{self.program}: nothing was measured of: {name.strip()}")
        self.count += 1
        if self.is_smoke:
            return
        show = lambda value: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"
        verdict = judge(values, meets if goal else None)
        if verdict == "NO":
            self.missed.append(name.strip())
        print(f"{name:<66}{show(statistics.median(values)) + unit:>16}  {show(min(values)):>9} – {show(max(values)):<9}  {goal:<18} {verdict}")

    def end(self):
        """Ends the program with an error if goals were missed."""
        if self.is_smoke:
            print(f"{self.program}: a smoke test of {self.count} figures has passed")
        elif self.missed:
            sys.exit(f"{self.program}: goals missed in every round: {'; '.join(self.missed)}")
