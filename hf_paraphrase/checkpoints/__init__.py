"""Checkpoints of others, read so that they do no harm and say what is wrong with them."""
