"""Training: recipes, length-bucketed batches, the Accelerate loop, whole checkpoints and learning curves.

Import from the modules (`hf_paraphrase.training.loop.train`, `.recipe.load_recipe`, …): some need heavy libraries.
"""
