"""Decoding: search algorithms, choosing among their outputs, and the text2text-generation pipeline."""
