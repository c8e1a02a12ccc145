from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from transformers import MarianConfig

from hf_paraphrase import __version__
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import card as datasets_card
from hf_paraphrase.datasets.loading import find_builder
from hf_paraphrase.evaluation.documents import COPIED, SHUFFLED
from hf_paraphrase.evaluation.results import Decoding, Entry, Results, Score
from hf_paraphrase.hub import card as card_module
from hf_paraphrase.hub.card import is_edited, make_card, seal
from hf_paraphrase.hub.checkpoint import Checkpoint
from hf_paraphrase.hub.results import list_scores, make_eval_results_yaml
from hf_paraphrase.papers import find_paper
from hf_paraphrase.registration import ARCHITECTURES

from .runs import ENVIRONMENT, PREDICTIONS, RESULTS, SUMMARY

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden_card.md")
CONFIG = {
    "model_type": "residual_lstm",
    "architectures": ["ResidualLstmForConditionalGeneration"],
    "auto_map": {
        "AutoConfig": "configuration_residual_lstm.ResidualLstmConfig",
        "AutoModel": "modeling_residual_lstm.ResidualLstmModel",
        "AutoModelForSeq2SeqLM": "modeling_residual_lstm.ResidualLstmForConditionalGeneration",
    },
    "vocab_size": 20,
    "hidden_size": 8,
    "num_layers": 2,
    "residual_interval": 2,
    "attention": None,
}
CORPUS = "## Source\n\nNowhere.\n\n## Licence\n\nCC0, made up.\n\n## Splits\n\n`train` and `test`.\n"


@pytest.fixture
def checkpoint(tmp_path, monkeypatch) -> Checkpoint:
    builder = find_builder("synthetic_questions")
    monkeypatch.setattr(builder, "__doc__", "Questions of a made-up corpus.")
    monkeypatch.setattr(datasets_card, "CARDS", tmp_path)
    (tmp_path / "synthetic_questions.md").write_text(CORPUS)
    monkeypatch.setattr(builder, "licence_id", "cc0-1.0")
    return Checkpoint(
        name="tiny",
        config=CONFIG,
        generation_config={"num_beams": 2},
        tokenizer_config={},
        sizes={"config.json": 1, "model.safetensors": 5000, "learning_curves.png": 3, "retriever/pairs.parquet": 9},
        parameters={"F32": 1234},
        summary=SUMMARY,
        results={"test": RESULTS},
        predictions={"test": PREDICTIONS},
    )


def test_golden_card(checkpoint):
    text = str(make_card(checkpoint, "you/tiny"))
    assert not is_edited(text)
    # All but the mark, which is a digest of the rest, and the release.
    text = text[: text.rindex("<!-- written by")].replace(f"{{{__version__}}}", "{VERSION}")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_metadata_by_choice(checkpoint):
    data = make_card(checkpoint, "you/tiny", dataset_id="you/questions", license="mit").data
    assert (data.license, data.datasets) == ("mit", ["you/questions"])
    assert {result.dataset_type for result in data.eval_results} == {"you/questions"}


def test_a_model_trained_and_evaluated_elsewhere(checkpoint):
    bare = replace(checkpoint, summary=None, results={}, predictions={}, sizes={"config.json": 1})
    card = make_card(bare)
    assert card.text.count("Not recorded: the checkpoint has no `training_summary.json`.") == 3
    assert "It was not evaluated." in card.text and "No outputs were kept." in card.text
    assert card.data.to_dict().keys() == {"library_name", "license", "pipeline_tag", "tags"}
    assert card.data.license == "other"
    assert "The language is not recorded." in card.text


def trained_on_own_files(checkpoint: Checkpoint) -> Checkpoint:
    files = {"train": "/home/somebody/secret.csv"}
    training = SUMMARY["recipe"]["training"] | {
        "dataset": "pairs",
        "dataset_kwargs": {"data_files": files, "source_column": "a"},
    }
    summary = SUMMARY | {"recipe": SUMMARY["recipe"] | {"training": training}}
    results = replace(RESULTS, data=replace(RESULTS.data, path="pairs"))
    return replace(checkpoint, summary=summary, results={"test": results})


def test_a_user_s_own_data_are_not_called_english_nor_by_a_name(checkpoint):
    checkpoint = trained_on_own_files(checkpoint)
    card = make_card(checkpoint, "you/tiny")
    for field in ("language", "datasets", "eval_results", "model_name"):
        assert getattr(card.data, field) is None, field
    assert not make_eval_results_yaml(checkpoint)
    assert "English" not in card.text and "The language is not recorded." in card.text
    assert "| corpus | data that are not published, `source_column='a'` |" in card.text
    assert "\ndata that are not published, split `test`" in card.text
    assert "secret" not in card.text and "Your own" not in card.text
    assert "| this model, beam 5 |" in card.text


MIXTURE = [
    {
        "name": "My sentences",
        "dataset": "groups",
        "licence": "CC BY 2.0",
        "train_pairs": 3000,
        "validation_pairs": 75,
        "pairs_per_epoch": 900,
        "share": 0.75,
    },
    {
        "name": "synthetic_questions",
        "dataset": "synthetic_questions",
        "licence": "CC0, made up",
        "train_pairs": 400,
        "validation_pairs": 25,
        "pairs_per_epoch": 300,
        "share": 0.25,
    },
]


def trained_on(checkpoint: Checkpoint, mixture: list[dict]) -> Checkpoint:
    """A checkpoint of a mixture, of whose own files the card may not say where they lie."""
    kwargs = {"data_files": "/home/somebody/secret.tsv", "max_words": 45}
    entries = [{"dataset": corpus["dataset"], "data_dir": "secret", "dataset_kwargs": kwargs} for corpus in mixture]
    training = SUMMARY["recipe"]["training"] | {"dataset": None, "dataset_kwargs": {}, "mixture": entries}
    summary = SUMMARY | {"recipe": SUMMARY["recipe"] | {"training": training}, "mixture": mixture}
    return replace(checkpoint, summary=summary)


def test_a_mixture_is_named_with_its_licences_and_shares(checkpoint):
    card = make_card(trained_on(checkpoint, MIXTURE), "you/tiny")
    assert "| My sentences | 75.0% | 900 of 3,000 | 75 | CC BY 2.0 |" in card.text
    assert "| synthetic_questions | 25.0% | 300 of 400 | 25 | CC0, made up |" in card.text
    assert "A mixture: My sentences, synthetic_questions." in card.text
    assert "secret" not in card.text and "max_words" in card.text
    # A part of it is not published: nobody knows its language, nor whether the weights may go by one licence.
    assert (card.data.license, card.data.language, card.data.datasets) == ("other", None, None)


def test_a_mixture_of_published_corpora_is_linked(checkpoint):
    mscoco = MIXTURE[0] | {"name": "mscoco", "dataset": "mscoco"}
    data = make_card(trained_on(checkpoint, [mscoco, MIXTURE[1]]), "you/tiny").data
    assert (data.license, data.language, data.datasets) == ("other", "en", ["mscoco", "synthetic_questions"])
    assert make_card(trained_on(checkpoint, [mscoco]), "you/tiny").data.license == "cc-by-4.0"


def test_what_a_user_says_of_own_data_stands_in_the_card(checkpoint):
    checkpoint = trained_on_own_files(checkpoint)
    card = make_card(checkpoint, "you/tiny", dataset_id="you/fragen", language="de")
    assert (card.data.language, card.data.datasets) == ("de", ["you/fragen"])
    assert "The language is `de`." in card.text
    assert {(result.dataset_type, result.dataset_name) for result in card.data.eval_results} == {("you/fragen",) * 2}
    assert "you/fragen" in make_eval_results_yaml(checkpoint, "you/fragen")


@pytest.mark.parametrize(("problem", "tag"), [(None, "text-classification"), ("ranking", "text-ranking")])
def test_a_model_of_sentence_pairs(checkpoint, problem, tag):
    config = CONFIG | {"architectures": ["XForSequenceClassification"], "problem_type": problem}
    scores = (Score("accuracy", 81.0, 80.0, 82.0, "all rows"),)
    results = Results("matches", RESULTS.data, (Entry("runs/pairs", "model", scores),), ENVIRONMENT)
    pair = {"sentence1": "a <b>", "sentence2": "c | d", "label": "entailment", "prediction": "neutral"}
    pairs = replace(
        checkpoint,
        config={name: value for name, value in config.items() if name != "auto_map"},
        results={"test": results},
        predictions={"test": [pair]},
    )
    card = make_card(pairs, "you/pairs")
    assert card.data.pipeline_tag == tag
    assert 'match = pipeline("text-classification", model="you/pairs", trust_remote_code=True)' in card.text
    assert 'match({"text": "a <b>", "text_pair": "c | d"})' in card.text
    assert "| this model | 81.00 (80.00 to 82.00) |" in card.text
    assert "| a &lt;b> | c \\| d | entailment | neutral |" in card.text
    (result,) = card.data.eval_results
    assert (result.metric_type, result.metric_name, result.metric_value) == ("accuracy", "accuracy", 81.0)


def with_entries(*entries: Entry, **fields: object) -> dict[str, Results]:
    """The results with other entries of the model, or other fields."""
    return {"test": replace(RESULTS, entries=(*entries, *RESULTS.entries[2:]), **fields)}


def test_outputs_by_several_pairs(checkpoint):
    entry, data = RESULTS.entries[0], replace(RESULTS.data, sample_seed=1)
    chosen = Decoding(num_beams=5, num_candidates=5, select="jaccard", num_neighbors=1, allow_own_pair=True)
    alike = (Score("self_bleu_2", 94.5, signature="nrefs:2"),)
    several = [
        replace(entry, decoding=chosen),
        replace(entry, decoding=replace(chosen, num_neighbors=3), diversity=alike),
    ]
    checkpoint = replace(checkpoint, results=with_entries(*several, data=data))
    card = make_card(checkpoint)
    assert "3 rows, drawn with seed 1;" in card.text
    assert "| this model, beam 5, 3 pairs a row, by jaccard of 5 | " in card.text and "94.50 |\n" in card.text
    assert "reference were allowed, the answer itself too.\nOne model with more or fewer pairs is not" in card.text
    assert "- self_bleu_2: `nrefs:2`" in card.text
    names = [result.metric_name for result in card.data.eval_results]
    assert len(set(names)) == len(names) and "bleu_4, beam 5, 1 pair a row, by jaccard of 5" in names
    left_out = replace(entry, decoding=replace(chosen, allow_own_pair=False), counts={"rows_with_own_pair": 2})
    text = make_card(replace(checkpoint, results=with_entries(left_out))).text
    assert "Pairs that share a row's source or reference (for 2 of 3 rows there are any) were left out.\n\n" in text
    assert "One model with more" not in text


def test_outputs_of_another_decoding(checkpoint):
    entry = replace(RESULTS.entries[0], decoding=Decoding("dips", 5, num_return_sequences=2))
    rows = [row | {"predictions": [row["prediction"], "other"]} for row in PREDICTIONS]
    card = make_card(replace(checkpoint, results=with_entries(entry), predictions={"test": rows}))
    assert "| this model, dips 5 | " in card.text
    assert "split `test`, unselected, dips 5." in card.text
    assert "| source | first reference | prediction |" in card.text


def test_an_autoencoder(checkpoint):
    scores = (Score("bleu_4", 24.1, 23.0, 25.0, "lc"),)
    baselines = [Entry(system, "baseline", scores) for system in (COPIED, SHUFFLED)]
    results = Results("documents", RESULTS.data, (Entry("runs/auto", "model", scores), *baselines), ENVIRONMENT)
    rows = [{"document": "a b .\nc d .", "output": "a b ."}]
    card = make_card(replace(checkpoint, results={"test": results}, predictions={"test": rows}), "you/auto")
    for row in ("this model", "the document, copied", "its sentences in random order"):
        assert f"| {row} | 24.10 (23.00 to 25.00) |" in card.text
    assert "- bleu_4: `lc`" in card.text and "| a b . c d . | a b . |" in card.text
    (result,) = card.data.eval_results
    assert (result.metric_name, result.metric_value) == ("bleu_4", 24.1)


def test_a_language_model(checkpoint):
    entry = Entry("runs/lm", "model", (Score("nits_per_character", 1.72, 1.71, 1.73, "unit:nats"),))
    results = Results("language_model", RESULTS.data, (entry,), ENVIRONMENT)
    card = make_card(replace(checkpoint, results={"test": results}, predictions={"test": []}))
    assert "| this model | 1.72 (1.71 to 1.73) |" in card.text and "- nits_per_character: `unit:nats`" in card.text
    assert "No outputs were kept." in card.text and "Perplexity of" not in card.text
    (result,) = card.data.eval_results
    assert (result.metric_name, result.metric_value) == ("nits_per_character", 1.72)


def test_every_architecture_has_its_notes():
    for row in ARCHITECTURES:
        paper, config_class = find_paper(row.model_type), row.config_class
        notes = paper.architectures[row.model_type]
        assert paper.citation.startswith("@") and notes.failures
        assert "{" not in notes.summarise(config_class().to_dict())
        assert notes.traits.keys() <= config_class().to_dict().keys()


def test_a_model_of_transformers_needs_no_code(checkpoint):
    config = MarianConfig(encoder_layers=6, decoder_layers=2, d_model=256).to_dict()
    transformer = replace(checkpoint, config={**config, "architectures": ["MarianMTModel"], "vocab_size": 12000})
    assert transformer.auto_class == "AutoModelForSeq2SeqLM"
    text = str(make_card(transformer, "you/tiny"))
    assert "a Transformer with 6 layers in the encoder and 2 in the decoder, 256 units wide" in text
    assert "no code is downloaded" in text and "trust_remote_code" not in text
    assert 'model = AutoModelForSeq2SeqLM.from_pretrained("you/tiny")' in text


def test_what_a_reader_accepts_stands_first(checkpoint):
    source = "Two cats sat on the mat."
    readings = [
        (source, "On the mat, a pair of cats was sitting.", True, True, True),
        (source, source, True, True, True),
        (source, "Nine dogs stood beside some other mats.", False, True, False),
        (source, None, False, False, True),
    ]
    names = ("source", "paraphrase", "means_same", "reads_well", "keeps_facts")
    rows = tuple({"kind": "news", **dict(zip(names, row, strict=True))} for row in readings)
    text = str(make_card(replace(checkpoint, readings=rows), "you/tiny"))
    before, after = text.split("## Use", 1)
    assert "**Of 4 sentences, unselected, 1 have a first paraphrase that means the same" in before
    assert "3 have a paraphrase at all; 1 of these change a name or a number." in before
    assert f"| news | {source} | {readings[0][1]} | means the same, reads well, differs |" in after
    assert (
        f"| news | {source} | - |  |" in after
        and f"| news | {source} | {source} | means the same, reads well |" in after
    )


def test_no_text_for_other_models(checkpoint):
    with pytest.raises(InputError, match="no card text for models of type bart; write a README.md"):
        make_card(replace(checkpoint, config=CONFIG | {"model_type": "bart"}))


def test_marks():
    text = seal("# A card\n")
    assert not is_edited(text) and seal("# A card") == text
    for edited in ("", "# A card\n", text.replace("card", "cart", 1), text + "more\n", text.replace("\n", "\r\n")):
        assert is_edited(edited), edited


def test_the_template_is_found_where_it_is_installed():
    """The wheel has it beside the module; a checkout where people look for cards."""
    parts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    installed, checkout = card_module.TEMPLATES
    place = parts["force-include"][str(checkout.relative_to(ROOT))]
    assert place == str(Path("hf_paraphrase/hub") / installed.name)
    assert checkout.is_file() and not installed.exists()


@pytest.mark.parametrize("path", sorted(ROOT.glob("model_cards/*/README.md")), ids=lambda path: path.parent.name)
def test_cards_of_what_was_trained(path):
    """They are valid, and their figures are those of the results beside them."""
    card = ModelCard.load(path)
    assert card.data.license and card.data.pipeline_tag and card.data.library_name == "hf_paraphrase"
    results = [Results.load(file) for file in path.parent.glob("results-*.json")]
    assert results
    values = {result.metric_value for result in card.data.eval_results}
    for found in results:
        own = [score for entry in found.of("model") for score in list_scores(entry)]
        assert own and values >= {round(score.score, 2) for score in own}
