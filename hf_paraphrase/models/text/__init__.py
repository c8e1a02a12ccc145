"""From texts to a model's inputs, and from its outputs to texts."""
