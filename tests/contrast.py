"""How well one colour can be told from another (Web Content Accessibility Guidelines 2.2, section 1.4)."""

from __future__ import annotations

# Red, green and blue, each from 0 to 255.
Colour = tuple[float, float, float]
BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def blend(colour: Colour, background: Colour, opacity: float) -> Colour:
    """What a colour looks like that lets the background through."""
    return tuple(opacity * one + (1 - opacity) * other for one, other in zip(colour, background, strict=True))


def contrast(one: Colour, other: Colour) -> float:
    """From 1, the same, to 21, black on white; text should have 4.5, and lines and marks 3."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Colour) -> float:
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (value / 255 for value in colour)]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
