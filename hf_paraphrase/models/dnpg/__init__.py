"""The decomposable neural paraphrase generator of Li et al. 2019."""
