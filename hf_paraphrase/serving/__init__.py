"""A model behind HTTP, which `hf-paraphrase serve` runs, and in the browser, which `demo` and `space` do.

`batching` computes together what is asked at the same time, `served_model` says what a model can be asked, `app` is
the application, and `server` runs it until it is told to stop; it needs the extra `serve`. `demo`
is the page; it needs the extra `demo`.
"""
