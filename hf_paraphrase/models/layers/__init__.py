"""Layers and base classes that several models share."""
