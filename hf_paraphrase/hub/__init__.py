"""Sharing: checkpoint folders, model cards and uploads to the Hub."""
