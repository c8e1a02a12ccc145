"""The snippet that the Hub's page of a model will show runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import ModelCard, ModelCardData
from transformers import pipeline

from hf_paraphrase.hub.card import make_card
from hf_paraphrase.hub.checkpoint import read_checkpoint
from hf_paraphrase.registration import ARCHITECTURES
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.generation.paraphrasers import character_tokenizer, make_paraphraser, tiny_hierarchical_lm
from tests.models.tiny import TEXT, WORDS, save, tiny_model

from .hub_page import find_snippets, run_snippet

ROOT = Path(__file__).parents[2]
CARDS = {path.parent.name: path for path in sorted(ROOT.glob("model_cards/*/README.md"))}
TYPES = {row.model_type: row for row in ARCHITECTURES}
ALONE = """
import json, sys
sys.modules["hf_paraphrase"] = None
sys.path.insert(0, sys.argv[1])
from hub_page import run_snippet
print(json.dumps([run_snippet(snippet) for snippet in json.loads(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """A checkpoint of each architecture."""
    folders = {}
    for name, row in TYPES.items():
        folder = tmp_path_factory.mktemp(name)
        tokenizer = train_word_tokenizer([TEXT], vocab_size=len(WORDS))
        if "labels_pairs" in row.config_class.abilities:
            tokenizer.model_input_names = [*tokenizer.model_input_names, "token_type_ids"]
        if row.tokenizer is not None:
            model, tokenizer = tiny_hierarchical_lm(), character_tokenizer()
        else:
            head = next(auto for auto in row.model_classes if auto.__name__ != "AutoModel")
            model = tiny_model(row.config_class, row.model_classes[head])
        if "labels_pairs" not in row.config_class.abilities:
            model.generation_config.max_new_tokens = 5
        if "reads_pairs" in row.config_class.abilities:
            make_paraphraser("fset").retriever.save_pretrained(folder / "retriever")
        folders[name] = save(model, folder, tokenizer)
    return folders


def metadata_of(name: str, folders: dict[str, str]) -> ModelCardData:
    """That of the card which a push would write."""
    return make_card(read_checkpoint(folders[name])).data


@pytest.mark.parametrize("name", TYPES)
def test_the_snippet_of_a_card_that_is_pushed_runs(name, folders):
    snippet = find_snippets(metadata_of(name, folders), folders[name])[0]
    assert "import hf_paraphrase" in snippet
    result = run_snippet(snippet)
    if "labels_pairs" in TYPES[name].config_class.abilities:
        assert 0 <= result["score"] <= 1
    else:
        assert len(result) == 3 and all(isinstance(record["generated_text"], str) for record in result)


@pytest.mark.parametrize("name", CARDS)
def test_the_snippet_of_every_card_here_runs(name, folders):
    data = ModelCard.load(CARDS[name]).data
    (model_type,) = TYPES.keys() & set(data.tags)
    assert run_snippet(find_snippets(data, folders[model_type])[0])


def test_the_snippets_without_the_package_run_without_it(folders, tmp_path):
    snippets = {name: find_snippets(metadata_of(name, folders), folders[name]) for name in TYPES}
    alone = {name: found[1] for name, found in snippets.items() if len(found) > 1}
    assert alone.keys() == {
        name for name, row in TYPES.items() if not row.config_class.abilities & {"labels_pairs", "reads_pairs"}
    }
    result = subprocess.run(
        [sys.executable, "-P", "-c", ALONE, str(Path(__file__).parent), json.dumps(list(alone.values()))],
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == [run_snippet(snippets[name][0]) for name in alone]


@pytest.mark.parametrize(
    "name", [name for name, row in TYPES.items() if "labels_pairs" not in row.config_class.abilities]
)
def test_what_the_rules_give_for_transformers_would_not_run(name, folders):
    """Why the cards name a library of their own: by `transformers`, the page would show this call."""
    with pytest.raises(ValueError):
        pipeline("text-generation", model=folders[name], trust_remote_code=True)


def test_a_card_of_another_library_has_no_snippet_of_ours():
    with pytest.raises(KeyError, match="transformers"):
        find_snippets(ModelCardData(library_name="transformers", pipeline_tag="text-generation", tags=[]), "you/model")
