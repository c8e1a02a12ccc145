"""The coupled LSTMs of Liu et al. 2016."""
