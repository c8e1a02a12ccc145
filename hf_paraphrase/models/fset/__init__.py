"""The sample-based editing Transformer of Kazemnejad et al. 2020."""
