"""Sharing: what a checkpoint folder holds, its card, and the way to the Hub."""
