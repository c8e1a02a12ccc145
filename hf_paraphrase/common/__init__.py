"""Shared basics: files, text tables, fields, bounds, environment and Hub access."""
