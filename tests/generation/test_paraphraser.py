"""What a paraphraser promises, for T5, BART and every generator of this package."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from datasets import Dataset

import hf_paraphrase
import hf_paraphrase.generation.paraphraser as paraphraser_module
import hf_paraphrase.generation.writers as writers
from hf_paraphrase import Paraphrase, Paraphraser, ParaphraseRetriever
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation import judges
from hf_paraphrase.generation.paraphrase_choice import CAUSAL_WEIGHTS, WEIGHTS, combine_scores, normal_form
from hf_paraphrase.generation.writers import Ask, Candidate, ModelWriter, ignores_case, write
from hf_paraphrase.metrics.pinc.scoring import pinc
from hf_paraphrase.models.layers import precision
from hf_paraphrase.tokenization import train_word_tokenizer
from tests.models.tiny import save, tiny_bart, tiny_gpt2, tiny_matcher, tiny_t5, word_tokenizer

from .paraphrasers import PAIRS, PARAPHRASERS, make_paraphraser, random_sentences

every = pytest.mark.parametrize("name", PARAPHRASERS)
TEXTS = ["how do i learn faster ?", "", "the cat sat on the mat with 3 dogs", "  ", "?!", "can you make bread"]


def texts_of(groups: list[list[Paraphrase]]) -> list[list[tuple]]:
    return [[(one.text, one.reason and one.reason.split()[0]) for one in group] for group in groups]


def assert_same(groups: list[list[Paraphrase]], expected: list[list[Paraphrase]]) -> None:
    """The same texts in the same order, and the same scores but for their last digits."""
    assert texts_of(groups) == texts_of(expected)
    for one, other in zip(sum(groups, []), sum(expected, []), strict=True):
        scores, others = ([score for score in each[1:5] if score is not None] for each in (one, other))
        assert scores == pytest.approx(others, rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("rows", [20, pytest.param(1000, marks=pytest.mark.slow)])
@every
def test_thresholds_hold_on_every_output(name: str, rows: int) -> None:
    """Three quarters of the candidates pass each of them; what passes all is returned, and nothing else."""
    paraphraser, texts = make_paraphraser(name), random_sentences(rows)
    # As many for each of FSET's five pairs, and so no more than `n` of a text.
    options = {"n": 10, "num_candidates": 10, "batch_size": 50, "seed": 1, "keep": ()}
    everything = sum(paraphraser(texts, return_rejected=True, **options), [])
    scored = [one for one in everything if one.adequacy is not None]
    # A little less, since scores differ in their last digits with the batch.
    least = {f: 0.9999 * sorted(getattr(one, f) for one in scored)[len(scored) // 4] for f in Paraphrase._fields[2:5]}
    groups = paraphraser(texts, **{f"min_{f}": value for f, value in least.items()}, **options)
    passing = sum(groups, [])
    assert 0 < len(passing) < len(scored)
    for field, value in least.items():
        assert min(getattr(one, field) for one in passing) >= value
    expected = [one for one in scored if all(getattr(one, field) >= value for field, value in least.items())]
    assert len(passing) == len(expected)


@every
def test_ordering_follows_the_scores(name: str) -> None:
    texts = random_sentences(30)
    options = {"decoding": "sample", "num_candidates": 8, "batch_size": 30, "diversity": 0.5, "keep": ()}
    groups = make_paraphraser(name)(texts, n=4, **options)
    assert sum(len(group) > 1 for group in groups) > 10
    for source, group in zip(texts, groups, strict=True):
        scores = [one.score for one in group]
        assert scores == sorted(scores, reverse=True) and len(group) <= 4
        for one in group:
            assert one.score == pytest.approx((one.adequacy * one.fluency**3 * one.novelty**0.25) ** (1 / 4.25))
            assert one.novelty == pytest.approx(pinc([one.text], [source], lowercase=True)["score"] / 100)
            assert all(0 <= score <= 1 for score in one[1:5]) and one.reason is None


@every
def test_never_the_source_or_one_text_twice(name: str) -> None:
    texts = random_sentences(12, seed=2)
    for source, group in zip(texts, make_paraphraser(name)(texts, n=9, batch_size=12, keep=()), strict=True):
        forms = [normal_form(text) for text in (source, *(one.text for one in group))]
        assert len(set(forms)) == len(forms) and all(forms)


DECODINGS = [
    {"decoding": "beam"},
    {"decoding": "diverse_beam", "diversity_penalty": 1.0},
    {"decoding": "dips", "fidelity": 0.3},
    {"decoding": "sample", "temperature": 0.8, "top_k": 9, "top_p": 0.95},
    {},
]


@pytest.mark.parametrize("options", DECODINGS, ids=lambda options: options.get("decoding", "default"))
@every
def test_batches_give_what_single_texts_give(name: str, options: dict) -> None:
    paraphraser = make_paraphraser(name)
    options = {"n": 3, "num_candidates": 6, "seed": 5, "return_rejected": True, **options}
    expected = [paraphraser(text, **options) for text in TEXTS]
    assert [bool(group) for group in expected] == [True, False, True, False, False, True]
    for batch_size in (2, 6):
        assert_same(paraphraser(TEXTS, batch_size=batch_size, **options), expected)
    assert_same(paraphraser(TEXTS[::-1], batch_size=4, **options), expected[::-1])


@every
def test_what_is_drawn_depends_on_the_seed(name: str) -> None:
    paraphraser = make_paraphraser(name)
    options = {"n": 10, "keep": (), "decoding": "noise" if name == "hierarchical_lm" else "sample"}
    state = torch.get_rng_state()
    first, again, other = (paraphraser(TEXTS[:3], seed=seed, **options) for seed in (1, 1, 2))
    assert first == again and texts_of(first) != texts_of(other)
    # Nor does it depend on, or change, what torch draws elsewhere.
    assert torch.equal(torch.get_rng_state(), state)


def test_samples_are_of_the_model_s_distribution() -> None:
    """First words of many samples, against the probabilities that the model states."""
    paraphraser = make_paraphraser("bart")
    model, tokenizer, count = paraphraser.model, paraphraser.tokenizer, 4000
    options = {"top_k": 0, "temperature": 3.0, "max_new_tokens": 1, "replace_unknown": False}
    ask = Ask(decoding="sample", num_candidates=count, generate_kwargs=options)
    (written,) = write(ModelWriter(model, tokenizer), ["the cat sat"], ask)
    with torch.no_grad():
        logits = model(**tokenizer("the cat sat", return_tensors="pt"), decoder_input_ids=torch.tensor([[2]])).logits
    expected = (logits[0, 0] / 3.0).softmax(0)
    for word in ("x", "the", "learn", "dog"):
        share = sum(candidate.text == word for candidate in written) / count
        p = float(expected[tokenizer.convert_tokens_to_ids(word)])
        assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / count) + 1e-9


def test_a_text_gives_a_list_a_list_lists_and_a_generator_a_generator() -> None:
    paraphraser = make_paraphraser("bart")
    expected = [paraphraser(text) for text in TEXTS]
    assert all(isinstance(one, Paraphrase) for group in expected for one in group)
    for column in (tuple(TEXTS), Dataset.from_dict({"source": TEXTS})["source"]):
        assert_same(paraphraser(column), expected)
    assert_same(list(paraphraser(text for text in TEXTS)), expected)
    assert paraphraser([]) == [] and paraphraser("") == [] and list(paraphraser(iter(()))) == []


def test_a_generator_is_read_a_batch_at_a_time() -> None:
    read = []

    def endless() -> Iterator[str]:
        while True:
            read.append(TEXTS[len(read) % len(TEXTS)])
            yield read[-1]

    stream = make_paraphraser("bart")(endless(), batch_size=3)
    assert read == []
    for number in range(1, 8):
        next(stream)
        assert len(read) == -(-number // 3) * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "`n` must be a whole number of at least 1, not 0"),
        ({"n": 2.5}, "`n` must be a whole number"),
        ({"n": True}, "`n` must be a whole number"),
        ({"min_adequacy": 1.5}, "`min_adequacy` must be from 0 to 1, not 1.5"),
        ({"min_fluency": -0.1}, "`min_fluency` must be from 0 to 1"),
        ({"min_novelty": math.nan}, "`min_novelty` must be from 0 to 1"),
        ({"min_novelty": "much"}, "`min_novelty` must be from 0 to 1, not 'much'"),
        ({"diversity": 2}, "`diversity` must be from 0 to 1, not 2"),
        ({"keep": ["number"]}, "`keep`: 'number' is near to the kind 'numbers'"),
        ({"weights": (1, 1)}, "`weights` must be three numbers"),
        ({"weights": (0, 0, 0)}, "`weights` must be three numbers"),
        ({"weights": (1, -1, 3)}, "`weights` must be three numbers"),
        ({"decoding": "best"}, "`decoding` must be one of beam, diverse_beam, dips, sample, noise, not 'best'"),
        ({"decoding": "noise"}, "is for a model that embeds sentences, which a BartFor"),
        ({"num_candidates": 2}, "`num_candidates` must be at least `n`, 3, not 2"),
        ({"num_candidates": 0}, "`num_candidates` must be a whole number of at least 1"),
        ({"num_neighbors": 3}, "`num_neighbors`: a BartForConditionalGeneration edits by no retrieved pair"),
        ({"batch_size": 0}, "`batch_size` must be a whole number of at least 1"),
        ({"seed": None}, "`seed` must be a whole number, not None"),
        ({"num_return_sequences": 3}, "`num_return_sequences` is not asked of a pool .* see `num_candidates`"),
        ({"do_sample": True}, "`do_sample` is not asked of a pool .* see `decoding='sample'`"),
        (
            {"adequacy": "exact"},
            "`adequacy` must be one of open, round_trip, embedding, matcher, jaccard, mbr, or a function, not 'exact'",
        ),
        ({"select": "luck"}, "`select` must be one of score, jaccard, mbr, embedding, matcher, not 'luck'"),
        ({"select": "mbr", "weights": (1, 1, 1)}, "`select` decides on `adequacy` and `weights`: leave them out"),
        ({"noise": 0.5}, "`noise` is for `decoding='noise'` alone"),
        ({"temperature": "uniform"}, "`temperature` must be a number"),
        ({"encoder": "x"}, "`encoder` is asked with `adequacy='embedding'` alone"),
        ({"matcher": "x"}, "`matcher` is asked with `adequacy='matcher'` alone"),
        ({"adequacy": "matcher"}, "needs `matcher`"),
        ({"adequacy": "matcher", "matcher": "no/such"}, "no/such is not a loadable sentence-pair model"),
        ({"adequacy": "embedding", "encoder": "no/such"}, "the encoder no/such cannot be loaded"),
        ({"fluency": "no/such"}, "`fluency`: no/such is not a loadable causal language model"),
        ({"texts": 3}, "`texts` must be a text or give texts, not a int"),
        ({"texts": ["a", None]}, "`texts`, number 1 from 0: a NoneType, not a text: None"),
    ],
)
def test_what_cannot_be_is_said_before_any_model_work(
    options: dict, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paraphraser = make_paraphraser("bart")
    monkeypatch.setattr(type(paraphraser.model), "generate", None)
    monkeypatch.setattr(type(paraphraser.model), "forward", None)
    with pytest.raises(InputError, match=message):
        paraphraser(**{"texts": ["how do i learn"], **options})
    if "texts" not in options:  # a generator is not even begun
        with pytest.raises(InputError, match=message):
            paraphraser((1 / 0 for _ in "a"), **options)


@pytest.mark.parametrize(
    ("name", "close"),
    [("min_adequcy", "`min_adequacy`"), ("num_beam", "`num_beams`"), ("max_new_token", "`max_new_tokens`")],
)
def test_a_misspelt_argument_gets_the_closest_names(name: str, close: str) -> None:
    with pytest.raises(InputError, match=f"unknown argument `{name}`; did you mean {close}"):
        make_paraphraser("bart")("how do i learn", **{name: 1})


def test_options_of_noise() -> None:
    paraphraser = make_paraphraser("hierarchical_lm")
    with pytest.raises(InputError, match="`num_beams`: `decoding='noise'` takes temperature, noise, max_new_tokens"):
        paraphraser("a cat", num_beams=3)
    options = {"keep": (), "num_candidates": 8, "n": 8, "max_new_tokens": 9}
    # Without noise and temperature all candidates are the likeliest one.
    assert len(paraphraser("a cat", temperature=0.0, noise=0.0, **options)) == 1
    assert len(paraphraser("a cat", **options)) > 1


def test_what_a_generator_gives_is_checked_as_it_comes() -> None:
    stream = make_paraphraser("bart")(iter(["a cat", "a dog", 3]), batch_size=2)
    next(stream), next(stream)
    with pytest.raises(InputError, match="`texts`, number 2 from 0: a int"):
        next(stream)


def test_names_and_numbers_are_kept_unless_told_otherwise() -> None:
    """Words that the model does not know, so that it loses them, unless it takes them from the source."""
    paraphraser, text = make_paraphraser("bart"), "how do i learn faster in Oslo ?"
    assert paraphraser(text, replace_unknown=False) == []
    assert all("Oslo" in one.text for one in paraphraser(text))
    rejected = paraphraser(text, return_rejected=True, replace_unknown=False)
    assert rejected and {one.reason for one in rejected} == {"loses 'Oslo' (names)"}
    assert {one.score for one in rejected} == {None}
    assert len(paraphraser(text, keep=(), replace_unknown=False)) == 3
    lost = paraphraser("3 cats", keep="numbers", return_rejected=True, replace_unknown=False)
    assert [one.reason for one in lost][0].startswith("loses")


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_model_that_knows_no_case_may_ignore_it(lowercase: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train_word_tokenizer(["How do I learn in Oslo ?"] * 3, vocab_size=30, lowercase=lowercase)
    assert ignores_case(tokenizer) is lowercase
    written = [[Candidate("we live in oslo")]]
    monkeypatch.setattr(ModelWriter, "write", lambda *args: written)
    (one,) = Paraphraser(tiny_bart(), tokenizer)("we are in Oslo", return_rejected=True, min_adequacy=0)
    assert one.reason == (None if lowercase else "loses 'Oslo' (names)")


def test_rejected_ones_follow_with_their_reasons() -> None:
    paraphraser, text = make_paraphraser("bart"), "the cat sat on the mat"
    options = {"n": 2, "num_candidates": 12, "min_fluency": 0.02, "decoding": "sample"}
    chosen, everything = (paraphraser(text, return_rejected=flag, **options) for flag in (False, True))
    assert everything[: len(chosen)] == chosen and len(everything) > len(chosen)
    assert all(one.reason is None for one in chosen)
    reasons = [one.reason for one in everything[len(chosen) :]]
    assert all(reasons) and any(reason.endswith("is below 0.02") for reason in reasons)
    scores = [one.score for one in everything[len(chosen) :] if one.score is not None]
    assert scores == sorted(scores, reverse=True)


def test_weights_of_the_scores() -> None:
    assert combine_scores([0.25, 1.0, 1.0], (1, 1, 0)) == pytest.approx(0.5)
    assert combine_scores([0.25, 0.5, 0.0], (1, 0, 0)) == pytest.approx(0.25)
    assert combine_scores([0.25, 0.5, 0.0]) == 0.0
    for one in make_paraphraser("bart")("the cat sat", weights=(0, 2, 0)):
        assert one.score == pytest.approx(one.fluency)


def test_a_saved_checkpoint_brings_all_along(tmp_path: Path) -> None:
    fset = make_paraphraser("fset")
    save(fset.model, tmp_path)
    with pytest.raises(ValueError, match="has no folder retriever"):
        Paraphraser.from_pretrained(tmp_path, device="cpu")
    ParaphraseRetriever.from_pairs(PAIRS, encoder="jaccard").save_pretrained(tmp_path / "retriever")
    loaded = hf_paraphrase.Paraphraser.from_pretrained(tmp_path, device="cpu")
    options = {"keep": (), "min_adequacy": 0, "min_novelty": 0}
    assert_same(loaded(TEXTS, **options), fset(TEXTS, **options))
    pairs = {tuple(pair) for pair in PAIRS}
    assert len(loaded.retriever) == len(pairs)


@pytest.mark.parametrize("dtype", ["bfloat16", "fast"])
def test_a_checkpoint_runs_in_another_precision(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(precision, "runs_lstm", lambda dtype: True)
    save(make_paraphraser("residual_lstm").model, tmp_path)
    loaded = Paraphraser.from_pretrained(tmp_path, device="cpu", dtype=dtype)
    assert loaded.model.dtype == torch.bfloat16
    assert len(loaded(TEXTS, keep=())) == len(TEXTS)
    assert Paraphraser.from_pretrained(tmp_path, device="cpu").model.dtype == torch.float32
    with pytest.raises(InputError, match="`dtype` must be one of float32, .*, auto, not 'int4'"):
        Paraphraser.from_pretrained(tmp_path, dtype="int4")


def test_candidates_come_by_all_retrieved_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, generate = [], writers.generate_outputs
    monkeypatch.setattr(writers, "generate_outputs", lambda *a, **k: asked.append(k["pairs"]) or generate(*a, **k))
    paraphraser = make_paraphraser("fset")
    paraphraser("the cat sat", num_neighbors=3, num_candidates=7)
    paraphraser("the cat sat")
    assert [len(set(pairs)) for pairs in asked] == [3, 4]  # there are but four
    assert asked[0][0] == PAIRS[0]


def test_the_prefix_of_a_checkpoint_is_read_before_every_text() -> None:
    model = tiny_t5()
    plain = Paraphraser(model, word_tokenizer(), prefix="")
    given = Paraphraser(model, word_tokenizer(), prefix="how do ")
    model.config.task_specific_params = {"text2text-generation": {"prefix": "how do "}}
    configured = Paraphraser(model, word_tokenizer())
    options = {"keep": (), "max_new_tokens": 6, "min_adequacy": 0, "min_novelty": 0}
    assert configured("the cat sat", **options) == given("the cat sat", **options) != plain("the cat sat", **options)
    # The prefix is not part of the text: neither of what is new, nor of what is written back.
    options["return_rejected"] = True
    (before, after) = plain("how do the cat sat", **options), given("the cat sat", **options)
    assert {(one.text, one.fluency) for one in before} == {(one.text, one.fluency) for one in after}
    assert {(one.text, one.adequacy) for one in before} != {(one.text, one.adequacy) for one in after}


def test_models_that_are_named_are_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, loaded = save(tiny_gpt2(), tmp_path), []
    load = judges.load_causal_fluency
    monkeypatch.setattr(judges, "load_causal_fluency", lambda *args: loaded.append(args) or load(*args))
    paraphraser = Paraphraser(tiny_bart(), word_tokenizer())
    ask = partial(paraphraser, "the cat sat", fluency=path, keep=(), min_adequacy=0, min_novelty=0)
    first, second = ask(), ask()
    assert first == second and len(loaded) == 1
    # Another model's probabilities weigh less.
    assert first == ask(weights=CAUSAL_WEIGHTS) != ask(weights=WEIGHTS)


def test_other_models_are_refused() -> None:
    with pytest.raises(ValueError, match="needs an encoder-decoder model"):
        Paraphraser(tiny_matcher(2), word_tokenizer())


@pytest.mark.parametrize("place", ["terminal", "notebook", "pipe"])
@pytest.mark.parametrize(("as_list", "total"), [(True, 500), (False, None)])
def test_long_work_shows_how_far_it_is(
    as_list: bool, total: int | None, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: place == "terminal"))
    if place == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    bars = []

    class Bar(paraphraser_module.tqdm):
        def __init__(self, **options):
            bars.append(self)
            self.steps, self.is_shown = [], not options["disable"]
            super().__init__(**options | {"disable": True})
            self.total = options["total"]

        def update(self, n: int) -> None:
            self.steps.append(n)

    monkeypatch.setattr(paraphraser_module, "tqdm", Bar)
    monkeypatch.setattr(ModelWriter, "write", lambda self, texts, pairs, ask: [[] for _ in texts])
    texts = ["the cat sat"] * 500
    list(make_paraphraser("bart")(texts if as_list else iter(texts)))
    (bar,) = bars
    assert (sum(bar.steps), bar.total, bar.is_shown) == (500, total, place != "pipe")
    assert len(bar.steps) >= 10 or place == "pipe"


def test_a_batch_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraphraser_module, "is_watched", lambda: True)
    monkeypatch.setattr(ModelWriter, "write", lambda self, texts, pairs, ask: [[] for _ in texts])
    error = io.StringIO()
    monkeypatch.setattr(sys, "stderr", error)
    make_paraphraser("bart")(["the cat sat"] * 16)
    assert not error.getvalue()


def test_tables_of_pandas_and_numpy() -> None:
    paraphraser = make_paraphraser("t5")
    texts = ["the cat sat", "how do i learn ?"]
    expected = paraphraser(texts, 2, max_new_tokens=4)
    table = pandas.DataFrame({"number": [1, 2, 3], "text": [texts[0], None, texts[1]]})
    missing = [float("nan"), None, pandas.NA]
    for found in (
        paraphraser(table["text"], 2, max_new_tokens=4).tolist(),
        paraphraser(table, 2, column="text", max_new_tokens=4).tolist(),
        paraphraser(np.array([texts[0], missing[0], texts[1]], dtype=object), 2, max_new_tokens=4),
    ):
        assert found == [expected[0], [], expected[1]]
    assert paraphraser(pandas.Series(missing, dtype=object), 2).tolist() == [[], [], []]
    # Rows that are asked for alone keep their place, whatever their number.
    table.index = ["a", "b", "c"]
    table["p"] = paraphraser(table["text"][["c", "a"]], 2, max_new_tokens=4)
    assert table["p"]["a"] == expected[0] and table["p"].isna()["b"] and table["p"]["c"] == expected[1]
    with pytest.raises(InputError, match="say which column holds the texts: `column=`.*'number', 'text'"):
        paraphraser(table)
    with pytest.raises(InputError, match="there is no column 'words'"):
        paraphraser(table, column="words")
    with pytest.raises(InputError, match="is for a DataFrame, not for a list"):
        paraphraser(texts, column="text")
    with pytest.raises(InputError, match="one dimension"):
        paraphraser(np.array([texts]))
    with pytest.raises(InputError, match="number 1 from 0: a int"):
        paraphraser(pandas.Series([texts[0], 3], dtype=object))


def test_a_soft_hyphen_hides_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    paraphraser = make_paraphraser("t5")
    written = ["You go to Stockholm", "You go to Stock"]
    monkeypatch.setattr(ModelWriter, "write", lambda *args: [[Candidate(text) for text in written]])
    found = paraphraser("I go to Stock\u00adholm", 2, min_novelty=0, return_rejected=True)
    assert [one.text for one in found if one.reason is None] == written[:1]
    assert found[1].reason == "loses 'Stockholm' (names)"


def test_sentences_of_a_document_that_are_left() -> None:
    """Those longer than the model reads, whose beginning it would rewrite; those without adequate candidates."""
    paraphraser = make_paraphraser("bart")
    text = "the cat sat on the mat. how do i learn ?"

    def find_left(adequacy: float, **options: int) -> list[str]:
        options |= {"adequacy": lambda sources, candidates: [adequacy] * len(sources), "min_novelty": 0}
        _, changes = paraphraser.document(text, return_changes=True, **options)
        return [change.before for change in changes if change.after is None]

    assert find_left(0.5) == []
    assert find_left(0.5, max_source_length=7) == ["the cat sat on the mat."]
    assert find_left(0.05) == ["the cat sat on the mat.", "how do i learn ?"]
