"""The paragraph autoencoders of Li et al. 2015."""
