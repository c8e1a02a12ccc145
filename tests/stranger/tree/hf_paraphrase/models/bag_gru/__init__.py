"""A GRU decoder that starts from the mean of its source's words (Cho et al. 2014)."""
