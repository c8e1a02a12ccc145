"""The models that Liu et al. 2016 compare the coupled LSTMs with."""
