from __future__ import annotations

import re

import pytest
from huggingface_hub import RepoCard

from hf_paraphrase.metrics import list_metrics, load_metric

pytest.importorskip("gradio")


@pytest.fixture(params=list_metrics())
def card(request: pytest.FixtureRequest) -> RepoCard:
    from hf_paraphrase.hub.metric_space import make_metric_card

    metric = load_metric(request.param, keep_in_memory=True)
    return RepoCard(make_metric_card(metric, f"you/{request.param}"))


def test_every_metric_has_a_card(card):
    metadata = card.data.to_dict()
    assert {"title", "description", "license", "sdk_version"} <= metadata.keys()
    assert metadata["sdk"] == "gradio" and metadata["app_file"] == "app.py"
    assert {"evaluate", "metric"} <= set(metadata["tags"])
    assert f"\n# {metadata['title']}\n\n{metadata['description']}\n" in card.text
    _, *parts = re.split(r"\n## (.+)\n", card.text)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(sections) == ["How to use", "Inputs", "Output", "Limits", "Sources"]
    assert 'evaluate.load("you/' in sections["How to use"] and "load_metric(" not in card.text
    assert sections["Limits"].startswith("\n- ")
    assert re.search(r"\n```bibtex\n@\w+\{.+\}\n```\n$", sections["Sources"], re.DOTALL)


def test_a_card_says_what_the_docstrings_say():
    from hf_paraphrase.hub.metric_space import make_metric_card

    text = make_metric_card(load_metric("pinc", keep_in_memory=True), "you/novelty")
    assert '>>> evaluate.load("you/novelty").compute(predictions=["a b"], sources=["a c"])["score"]\n75.0\n' in text
    assert "\n| `sources` |  | The text that each of them paraphrases. |\n" in text
    assert (
        "\n| `tokenize` | `'13a'` | A tokenizer of sacrebleu; `none` for text that is tokenised already. |\n" in text
    )
    assert "compare only scores with equal signatures" in text
    assert "equal signatures" not in make_metric_card(load_metric("perplexity", keep_in_memory=True), "you/perplexity")
