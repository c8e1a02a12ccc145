"""Trained models as apps and services for others to use."""
