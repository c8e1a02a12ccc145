"""The LSTMs that edit by a retrieved pair, baselines of Kazemnejad et al. 2020."""
