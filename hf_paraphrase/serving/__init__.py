"""A model behind HTTP: what `hf-paraphrase serve` runs.

`batching` computes together what is asked at the same time, `served_model` says what a model can be asked, `app` is
the application, and `server` runs it until it is told to stop. It needs `pip install 'hf-paraphrase[serve]'`.
"""
