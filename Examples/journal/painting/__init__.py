"""Draws the pictures of the sample journal: a canvas, what nature and people put on it, and one scene for each place."""
