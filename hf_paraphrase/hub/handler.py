"""Answers requests to an Inference Endpoint for the model in this folder.

A request is `{"inputs": a text or a list of texts, "parameters": {…}}`; for a model of sentence pairs an input is
`{"text": …, "text_pair": …}`. torch and transformers are enough; where hf_paraphrase is installed too, a model that
edits by retrieved pairs finds them, and the parameter `n` asks a `Paraphraser`. Running this file means trusting its
repository, so the model's code runs too.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Pipeline,
    TextClassificationPipeline,
)
from transformers.dynamic_module_utils import get_class_from_dynamic_module

BATCH_SIZE = 16


class EndpointHandler:
    """The endpoint creates this class once, with the repository's folder, and calls it for every request."""

    def __init__(self, path: str = ""):
        self.has_package = importlib.util.find_spec("hf_paraphrase") is not None
        if self.has_package:
            import hf_paraphrase  # noqa: F401  its import registers the architectures
        # Without the package, the code in the checkpoint takes its place.
        options = {"trust_remote_code": not self.has_package}
        names = AutoConfig.from_pretrained(path, **options).architectures or []
        self.matches = any("ForSequenceClassification" in name for name in names)
        auto_class = AutoModelForSequenceClassification if self.matches else AutoModelForSeq2SeqLM
        model = auto_class.from_pretrained(path, **options).eval()
        tokenizer = AutoTokenizer.from_pretrained(path, **options)
        self.pipeline = self._find_pipeline(path)(model=model, tokenizer=tokenizer)
        self.paraphraser: Any = None

    def _find_pipeline(self, path: str) -> type[Pipeline]:
        if self.matches:
            return TextClassificationPipeline
        if self.has_package:
            from hf_paraphrase import Text2TextGenerationPipeline

            return Text2TextGenerationPipeline
        return get_class_from_dynamic_module("search.Text2TextGenerationPipeline", path)

    def __call__(self, data: dict[str, Any]) -> list[Any]:
        """Answer a request.

        Args:
            data: `inputs`, as above, and `parameters`: those of the pipeline, such as `num_return_sequences`,
                `decoding`, `max_new_tokens`, `batch_size`, or `retrieved` pairs; or `n` and others of `Paraphraser`.

        Returns:
            For a text a list of `{"generated_text": …, "score": …}`, the likeliest first; for a list what the pipeline
            returns for it: one such dict a text, or a list of them where each text gets several. For pairs of
            sentences one `{"label": …, "score": …}` a pair, or all labels of each with `top_k` null. With `n` the
            paraphrases of a text, or a list of them for each text, as dicts with their scores.

        Raises:
            ValueError: The request is invalid; the endpoint answers status 400 with the message.
        """
        if "inputs" not in data:
            raise ValueError('a request is {"inputs": …, "parameters": {…}}: it has no `inputs`')
        inputs, parameters = data["inputs"], data.get("parameters") or {}
        if "n" in parameters:
            return self._paraphrase(inputs, parameters)
        if self.matches:
            batch = inputs if isinstance(inputs, list) else [inputs]
            return self.pipeline(batch, **{"batch_size": BATCH_SIZE, "truncation": True, **parameters})
        return self.pipeline(inputs, **{"batch_size": BATCH_SIZE, "output_scores": True, **parameters})

    def _paraphrase(self, inputs: str | list[str], parameters: dict[str, Any]) -> list[Any]:
        if self.matches or not self.has_package:
            raise ValueError(
                "`n` asks for scored paraphrases: that needs a model that writes, and hf_paraphrase in the "
                "repository's requirements.txt; `num_return_sequences` asks for unscored ones"
            )
        if self.paraphraser is None:
            from hf_paraphrase import Paraphraser

            self.paraphraser = Paraphraser(self.pipeline.model, self.pipeline.tokenizer)
        found = self.paraphraser(inputs, **parameters)
        if isinstance(inputs, str):
            return [one._asdict() for one in found]
        return [[one._asdict() for one in group] for group in found]
