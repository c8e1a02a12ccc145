"""A model behind HTTP, which `hf-paraphrase serve` runs, and in the browser, which `demo` and `space` do.

`batching` batches concurrent requests, `served_model` maps models to tasks, `app` is the application, and `server`
runs it until a signal stops it; it needs the extra `serve`. `demo` is the page; it needs the extra `demo`.
"""
