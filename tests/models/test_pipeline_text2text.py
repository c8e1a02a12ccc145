from __future__ import annotations

import json
import logging

import datasets
import numpy as np
import pandas
import pytest
import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast, TextIteratorStreamer, TextStreamer, pipeline
from transformers.pipelines.pt_utils import KeyDataset

import hf_paraphrase
from hf_paraphrase.generation import dips, diverse_beam_search
from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration
from hf_paraphrase.models.text.surface import restore_surface
from hf_paraphrase.tokenization import train_tokenizer
from tests.models.tiny import save, tiny_bart, tiny_gpt2, tiny_model, tiny_t5, word_tokenizer

TASK = "text2text-generation"
TEXTS = ["the cat", "a dog sat on the mat", "how do i learn faster ?", "unheard cat", "z"]
SHORT = {"max_new_tokens": 6}


@pytest.fixture(scope="module", params=[tiny_bart, tiny_t5])
def folder(request, tmp_path_factory) -> str:
    return save(request.param(), tmp_path_factory.mktemp(request.param.__name__))


@pytest.fixture
def pipe(folder):
    return pipeline(TASK, model=folder, device="cpu")


def text2text(model, tokenizer: PreTrainedTokenizerFast | None = None, **kwargs):
    tokenizer = tokenizer or word_tokenizer()
    return hf_paraphrase.Text2TextGenerationPipeline(model=model, tokenizer=tokenizer, device="cpu", **kwargs)


def spy_on_generate(pipe, monkeypatch) -> list[dict]:
    calls = []
    generate = pipe.model.generate
    monkeypatch.setattr(pipe.model, "generate", lambda **kwargs: calls.append(kwargs) or generate(**kwargs))
    return calls


def test_one_text(pipe):
    ids = pipe.model.generate(**pipe.tokenizer(TEXTS[0], return_tensors="pt"), num_beams=4, **SHORT)
    expected = pipe.tokenizer.decode(ids[0], skip_special_tokens=True)
    assert expected
    assert pipe(TEXTS[0], **SHORT) == [{"generated_text": expected}]


def test_a_list_of_texts_gives_a_flat_list(pipe):
    expected = [pipe(text, **SHORT)[0] for text in TEXTS]
    assert len({record["generated_text"] for record in expected}) > 2
    assert pipe(TEXTS, **SHORT) == pipe(tuple(TEXTS), **SHORT) == expected
    assert pipe(datasets.Dataset.from_dict({"source": TEXTS})["source"], **SHORT) == expected
    assert pipe(TEXTS[:1], **SHORT) == expected[:1]


def test_several_sequences_give_a_list_for_each_text(pipe):
    many = pipe(TEXTS, num_return_sequences=3, **SHORT)
    assert many == [pipe(text, num_return_sequences=3, **SHORT) for text in TEXTS]
    assert [len(records) for records in many] == [3] * len(TEXTS)
    assert many[0][0] == pipe(TEXTS[0], **SHORT)[0] != many[0][1]


@pytest.mark.parametrize("returned", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 4, None])
def test_batches_change_nothing(pipe, batch_size, returned):
    texts = [*TEXTS, "", "a"]
    alone = [pipe(text, num_return_sequences=returned, **SHORT) for text in texts]
    batched = pipe((text for text in texts), num_return_sequences=returned, batch_size=batch_size, **SHORT)
    assert list(batched) == alone


def test_datasets_and_generators_are_streamed(pipe):
    expected = [pipe(text, **SHORT) for text in TEXTS]
    data = [{"source": text} for text in TEXTS]
    assert list(pipe(KeyDataset(data, "source"), batch_size=2, **SHORT)) == expected
    read = []
    stream = iter(pipe((read.append(text) or text for text in TEXTS), **SHORT))
    assert next(stream) == expected[0]
    assert len(read) < len(TEXTS)
    assert list(stream) == expected[1:]


def test_nothing_to_do(pipe):
    assert pipe([]) == pipe(()) == list(pipe(KeyDataset([], "source"))) == list(pipe(text for text in ())) == []


def test_tensors_instead_of_text(pipe):
    records = pipe(TEXTS, return_tensors=True, num_return_sequences=2, batch_size=3, **SHORT)
    for record in sum(records, []):
        assert list(record) == ["generated_token_ids"]
        assert record["generated_token_ids"].dtype == torch.long
        assert record["generated_token_ids"].dim() == 1
    (record,) = pipe(TEXTS[0], return_tensors=True, **SHORT)
    text = pipe.tokenizer.decode(record["generated_token_ids"], skip_special_tokens=True)
    assert [{"generated_text": text}] == pipe(TEXTS[0], return_text=True, **SHORT)
    with pytest.raises(ValueError, match="`return_text` or `return_tensors`"):
        pipe(TEXTS[0], return_text=True, return_tensors=True)


def test_arguments_of_the_constructor_are_defaults_of_the_call(folder, monkeypatch):
    pipe = pipeline(TASK, model=folder, device="cpu", num_beams=2, max_new_tokens=3, return_tensors=True)
    calls = spy_on_generate(pipe, monkeypatch)
    assert "generated_token_ids" in pipe("the cat")[0]
    assert "generated_text" in pipe("the cat", num_beams=1, return_text=True)[0]
    assert [(call["num_beams"], call["max_new_tokens"]) for call in calls] == [(2, 3), (1, 3)]


def test_what_nobody_decides(pipe, monkeypatch):
    calls = spy_on_generate(pipe, monkeypatch)
    pipe("the cat")
    assert (calls[-1]["max_new_tokens"], calls[-1]["num_beams"]) == (256, 4)
    assert len(pipe("the cat", max_length=4, return_tensors=True)[0]["generated_token_ids"]) <= 4
    pipe.model.generation_config.update(num_beams=2, max_length=5)
    pipe("the cat")
    assert not {"max_new_tokens", "num_beams"} & calls[-1].keys()
    config = GenerationConfig(max_new_tokens=2, num_return_sequences=2, num_beams=2)
    assert len(pipe("the cat", generation_config=config)) == len(pipe("", generation_config=config)) == 2
    assert "num_beams" not in calls[-1]


def test_sampling_and_dictionaries_of_generate(pipe):
    sample = {"do_sample": True, "num_beams": 1, "top_k": 5, **SHORT}
    torch.manual_seed(1)
    expected = pipe(TEXTS, **sample)
    torch.manual_seed(1)
    assert pipe(TEXTS, return_dict_in_generate=True, **sample) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 1},
        {"num_beams": 1, "length_penalty": 0.0},
        {"num_beams": 4, "num_return_sequences": 2, "decoding": "diverse_beam", "diversity_penalty": 0.0},
        {"num_beams": 4, "num_return_sequences": 2, "decoding": "dips", "exclude_source": False},
    ],
)
def test_scores_reach_the_result(pipe, options):
    """Each is the logarithm of the probability of the sequence, read anew, over its length to some power."""
    texts = [*TEXTS, " "]
    records = pipe(texts, output_scores=True, batch_size=4, return_tensors=True, **options, **SHORT)
    plain = pipe(texts, **options, **SHORT)
    scored = pipe(texts, output_scores=True, **options, **SHORT)
    start, count = pipe.model.generation_config.decoder_start_token_id, options.get("num_return_sequences", 1)
    groups = (
        [records, plain, scored] if count > 1 else [[[record] for record in part] for part in (records, plain, scored)]
    )
    for text, ids, texts_alone, texts_scored in zip(texts, *groups, strict=True):
        assert [record["generated_text"] for record in texts_scored] == [one["generated_text"] for one in texts_alone]
        assert all(list(record) == ["generated_text"] for record in texts_alone)
        for record, other in zip(ids, texts_scored, strict=True):
            if not text.strip():
                assert record["score"] is other["score"] is None
                continue
            words = record["generated_token_ids"][1:].tolist()
            words = words[: words.index(2) + 1] if 2 in words else words[: SHORT["max_new_tokens"]]
            inputs = pipe.tokenizer(text, return_tensors="pt")
            logits = pipe.model(**inputs, decoder_input_ids=torch.tensor([[start, *words[:-1]]])).logits[0]
            total = logits.log_softmax(-1)[range(len(words)), words].sum().item()
            expected = total / len(words) ** options.get("length_penalty", 1.0)
            assert record["score"] == pytest.approx(expected, abs=1e-4)
            assert other["score"] == pytest.approx(expected, abs=1e-4)


def test_scores_of_what_stopped_otherwise_and_of_what_is_chosen(pipe):
    text = TEXTS[1]
    words = pipe(text, num_beams=1, **SHORT)[0]["generated_text"].split()
    options = {"num_beams": 1, "output_scores": True, "length_penalty": 0.0}
    alone = pipe(text, stop_sequence=words[0], **options, **SHORT)
    assert pipe([text, TEXTS[2]], stop_sequence=words[0], batch_size=2, **options, **SHORT)[0][
        "score"
    ] == pytest.approx(alone[0]["score"], abs=1e-4)
    config = GenerationConfig(max_new_tokens=4, num_beams=2, num_return_sequences=2, output_scores=True)
    first, second = pipe(text, generation_config=config)
    assert first["score"] >= second["score"]
    (chosen,) = pipe(text, num_candidates=2, num_beams=2, select="score", max_new_tokens=4, output_scores=True)
    assert chosen == first
    always = pipeline(TASK, model=pipe.model, tokenizer=pipe.tokenizer, device="cpu", output_scores=True)
    assert "score" in always(text, **SHORT)[0] and "score" not in always(text, output_scores=False, **SHORT)[0]


@pytest.mark.parametrize("name", ["output_logits", "output_attentions", "output_hidden_states"])
def test_what_has_no_place_in_the_result_is_refused(pipe, name):
    with pytest.raises(ValueError, match=f"`{name}`: the pipeline returns texts; call `model.generate"):
        pipe("the cat", **{name: True})


@pytest.mark.parametrize(
    ("name", "close"),
    [("num_candidate", "`num_candidates`"), ("num_beam", "`num_beams`"), ("trunction", "`truncation`")],
)
def test_a_misspelt_argument_gets_the_closest_names(pipe, name, close):
    with pytest.raises(ValueError, match=f"unknown argument `{name}`; did you mean {close}"):
        pipe("the cat", **{name: 1})


def test_streamer(pipe, capsys):
    (record,) = pipe("the cat", streamer=TextStreamer(pipe.tokenizer, skip_special_tokens=True), num_beams=1, **SHORT)
    assert capsys.readouterr().out == record["generated_text"] + "\n"
    streamer = TextIteratorStreamer(pipe.tokenizer, timeout=1)
    pipe(" ", streamer=streamer)
    assert "".join(streamer) == ""


def test_stop_sequence(pipe):
    outputs = {text: pipe(text, num_beams=1, **SHORT)[0]["generated_text"].split() for text in TEXTS}
    text, words = max(outputs.items(), key=lambda output: len(output[1]))
    end = words.index(words[2])
    (stopped,) = pipe(text, num_beams=1, stop_sequence=words[2], **SHORT)
    assert stopped["generated_text"].split() == words[: end + 1]
    (stopped,) = pipe(text, num_beams=1, stop_sequence=" ".join(words[:2]), **SHORT)
    assert stopped["generated_text"].split() == words[:2]
    with pytest.raises(ValueError, match="`stop_sequence` must have"):
        pipe(text, stop_sequence="")


@pytest.mark.parametrize("blank", ["", " \n\t", "\u3000"])
def test_a_text_without_words_gives_an_empty_text(pipe, blank, monkeypatch):
    batch = pipe(["the cat", blank, "a"], batch_size=3, **SHORT)
    assert batch == [*pipe("the cat", **SHORT), {"generated_text": ""}, *pipe("a", **SHORT)]
    monkeypatch.setattr(pipe.model, "generate", None)
    assert pipe(blank) == pipe([blank]) == [{"generated_text": ""}]
    assert pipe([blank] * 3, num_return_sequences=2, batch_size=2) == [[{"generated_text": ""}] * 2] * 3


def test_the_ids_of_an_empty_text(pipe):
    start = pipe.model.generation_config.decoder_start_token_id
    assert pipe("", return_tensors=True)[0]["generated_token_ids"].tolist() == [start, 2]
    words, blank = pipe(["the cat", ""], batch_size=2, return_tensors=True, **SHORT)
    length = len(words["generated_token_ids"])
    assert blank["generated_token_ids"].tolist() == [start, 2, *[0] * (length - 2)]


def test_blank_texts_without_any_token():
    pipe = text2text(tiny_t5(), word_tokenizer(end="", padding_side="left"))
    texts = ["", "the cat", "", "a dog sat"]
    assert pipe(texts, batch_size=4, **SHORT) == [pipe(text, **SHORT)[0] for text in texts]


def test_strange_texts_are_not_blank(pipe, monkeypatch):
    calls = spy_on_generate(pipe, monkeypatch)
    texts = ["😀", "שלום עולם", "unheard"]
    assert len(pipe(texts, **SHORT)) == len(calls) == 3


@pytest.mark.parametrize("fields", [{"prefix": "a dog "}, {"task_specific_params": {TASK: {"prefix": "a dog "}}}])
def test_prefix_of_the_config(fields):
    pipe = text2text(tiny_t5(**fields))
    expected = text2text(tiny_t5())("a dog on mat", **SHORT)
    assert pipe("on mat", **SHORT) == pipe(["on mat"], **SHORT) == expected
    assert pipe(" ") == [{"generated_text": ""}]


def test_task_specific_params_of_the_config(monkeypatch):
    pipe = text2text(
        tiny_t5(task_specific_params={TASK: {"num_beams": 2, "max_length": 4}, "other": {"num_beams": 9}})
    )
    calls = spy_on_generate(pipe, monkeypatch)
    pipe("the cat")
    pipe("the cat", num_beams=1)
    assert [(call["num_beams"], call["max_length"]) for call in calls] == [(2, 4), (1, 4)]


@pytest.mark.parametrize(
    ("decoding", "function", "options"),
    [
        ("diverse_beam", diverse_beam_search, {"num_beam_groups": 3, "diversity_penalty": 2.0}),
        ("dips", dips, {"fidelity": 0.2}),
    ],
)
def test_decodings(pipe, decoding, function, options):
    ids = pipe.model.generate(
        **pipe.tokenizer(TEXTS[1], return_tensors="pt"),
        custom_generate=function,
        num_beams=6,
        num_return_sequences=6,
        **options,
        **SHORT,
    )
    expected = [{"generated_text": text} for text in pipe.tokenizer.batch_decode(ids, skip_special_tokens=True)]
    # As many beams as sequences, if nobody says how many.
    options = {**options, "num_return_sequences": 6, **SHORT}
    assert pipe(TEXTS[1], decoding=decoding, **options) == pipe(TEXTS[1], decoding=function, **options) == expected
    assert expected != pipe(TEXTS[1], num_beams=6, num_return_sequences=6, **SHORT)
    texts = [*TEXTS[1:3], ""]
    assert pipe(texts, decoding=decoding, batch_size=3, **options)[0] == expected
    assert len(pipe(texts[0], decoding=decoding, num_candidates=6, select="jaccard", **SHORT)) == 1


def test_transformers_4_s_arguments_ask_for_diverse_beam_search(pipe, monkeypatch):
    options = {"num_beams": 6, "num_return_sequences": 6, **SHORT}
    groups = {"num_beam_groups": 3, "diversity_penalty": 2.0}
    expected = pipe(TEXTS[1], decoding="diverse_beam", **groups, **options)
    assert pipe(TEXTS[1], **groups, **options) == expected
    assert pipe(TEXTS[1], generation_config=GenerationConfig(**groups, **options)) == expected
    # Penalties alone: every beam is a group. Beams are added until the groups share them out.
    assert pipe(TEXTS[1], diversity_penalty=2.0, **options) == pipe(
        TEXTS[1], decoding="diverse_beam", num_beam_groups=6, diversity_penalty=2.0, **options
    )
    calls = spy_on_generate(pipe, monkeypatch)
    pipe(TEXTS[1], num_beam_groups=3, diversity_penalty=1.0, **SHORT)
    assert calls[-1]["num_beams"] == 6
    # What transformers 4 had for plain beam search is plain beam search.
    assert pipe(TEXTS[1], num_beam_groups=1, diversity_penalty=0.0, **options) == pipe(TEXTS[1], **options)
    pipe.model.generation_config.update(**groups)
    assert pipe(TEXTS[1], **options) == expected


def test_beams_are_counted_from_all_that_is_asked_for(folder, monkeypatch):
    pipe = pipeline(TASK, model=folder, device="cpu", num_beams=5, **SHORT)
    calls = spy_on_generate(pipe, monkeypatch)
    assert pipe("the cat", num_candidates=3, select="jaccard")
    assert pipe("the cat", num_candidates=6)
    assert [(call["num_beams"], call["num_return_sequences"]) for call in calls] == [(5, 3), (6, 6)]
    assert len(pipeline(TASK, model=folder, device="cpu", **SHORT)("the cat", num_return_sequences=6)) == 6


def test_a_decoding_for_every_call(folder):
    pipe = pipeline(TASK, model=folder, device="cpu", decoding="dips", **SHORT)
    plain = pipeline(TASK, model=folder, device="cpu", **SHORT)
    assert pipe(TEXTS) == plain(TEXTS, decoding="dips")
    assert pipe(TEXTS, decoding="beam") == plain(TEXTS)


def test_decodings_that_cannot_be(pipe):
    with pytest.raises(ValueError, match="must be one of beam, diverse_beam, dips, or a function, not 'best'"):
        pipe("the cat", decoding="best")
    with pytest.raises(ValueError, match="`streamer`: dips knows no word before the whole output"):
        pipe("the cat", decoding="dips", streamer=TextStreamer(pipe.tokenizer))


def test_truncation(folder, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    pipe = text2text(tiny_bart(), word_tokenizer(model_max_length=4))
    calls = spy_on_generate(pipe, monkeypatch)
    pipe("the cat sat on a mat", **SHORT)
    assert not caplog.text
    assert calls[-1]["input_ids"].shape == (1, 7)
    assert pipe("the cat sat on a mat", truncation=True, **SHORT) == pipe("the cat sat", **SHORT)
    assert calls[-2]["input_ids"].shape == (1, 4)


def test_a_warning_only_where_the_model_has_no_positions_for_a_text(monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    tokenizer = word_tokenizer(model_max_length=4)
    for model in (tiny_t5(), tiny_bart(), tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration)):
        text2text(model, tokenizer)("the cat sat on a mat", **SHORT)
    assert not caplog.text
    with pytest.raises(ValueError, match="the input has 311 tokens"):
        text2text(tiny_bart(), tokenizer)("the " * 310, **SHORT)
    assert "a text has 311 tokens, but BartForConditionalGeneration has positions for 300" in caplog.text


def test_token_type_ids_are_left_out():
    names = ["input_ids", "token_type_ids", "attention_mask"]
    pipe = text2text(tiny_bart(), word_tokenizer(model_input_names=names))
    assert "token_type_ids" in pipe.tokenizer("the cat")
    assert pipe(TEXTS, batch_size=2, **SHORT) == text2text(tiny_bart())(TEXTS, **SHORT)


@pytest.mark.parametrize("inputs", [None, 3, {"source": "the cat"}, datasets.Dataset.from_dict({"source": TEXTS})])
def test_an_input_that_is_no_text(pipe, inputs):
    with pytest.raises(ValueError, match=rf"is of type {type(inputs).__name__}.*KeyDataset"):
        pipe(inputs)


@pytest.mark.parametrize("inputs", [["a", None], ["a", ["b", "c"]], [*TEXTS, 5]])
def test_a_list_with_something_else(pipe, inputs, monkeypatch):
    monkeypatch.setattr(pipe.model, "generate", None)
    with pytest.raises(ValueError, match=f"input {len(inputs) - 1} of the list is of type"):
        pipe(inputs)
    with pytest.raises(ValueError, match="not a string"):
        list(pipe(text for text in inputs[-1:]))


def test_a_decoder_only_model(tmp_path):
    with pytest.raises(ValueError, match="GPT2LMHeadModel is none"):
        pipeline(TASK, model=save(tiny_gpt2(), tmp_path))


@pytest.mark.parametrize("make", [tiny_bart, tiny_t5])
def test_a_folder_without_tokenizer(make, tmp_path):
    make().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no tokenizer.*tokenizer.save_pretrained.*tokenizer="):
        pipeline(TASK, model=str(tmp_path))
    assert pipeline(TASK, model=str(tmp_path), tokenizer=word_tokenizer())("", device="cpu")


def test_a_damaged_tokenizer(tmp_path):
    folder = save(tiny_bart(), tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="no tokenizer could be loaded from.*AutoTokenizer.from_pretrained"):
        pipeline(TASK, model=folder)


def test_saving_the_pipeline_of_a_model_that_is_not_ours(pipe, tmp_path):
    pipe.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert not {"custom_pipelines", "auto_map"} & config.keys()
    assert not list(tmp_path.glob("*.py"))
    assert pipeline(TASK, model=str(tmp_path), device="cpu")(TEXTS, **SHORT) == pipe(TEXTS, **SHORT)


SURFACE = ["The Cat is in a Mat", "do you see Dog and Bread ?", "", "How do I Learn"]


@pytest.mark.parametrize("options", [{}, {"num_return_sequences": 2}, {"num_candidates": 3, "select": "jaccard"}])
def test_case_and_spacing_are_restored_on_request_alone(pipe, options):
    plain, restored = (pipe(SURFACE, **SHORT, **options, **asked) for asked in ({}, {"restore_surface": True}))
    plain, restored = (
        [group if isinstance(group, list) else [group] for group in groups] for groups in (plain, restored)
    )
    for source, before, after in zip(SURFACE, plain, restored, strict=True):
        expected = [restore_surface(record["generated_text"], source) for record in before]
        assert [record["generated_text"] for record in after] == expected
    assert plain != restored
    for batch_size in (2, 4):
        assert list(pipe((text for text in SURFACE), batch_size=batch_size, restore_surface=True, **SHORT)) == [
            pipe(source, restore_surface=True, **SHORT) for source in SURFACE
        ]


def test_a_pipeline_may_be_made_to_restore_text(folder):
    asked = {"restore_surface": True, "replace_unknown": True}
    made = pipeline(TASK, model=folder, device="cpu", **asked)
    assert made(SURFACE, **SHORT) == pipeline(TASK, model=folder, device="cpu")(SURFACE, **asked, **SHORT)
    assert made(SURFACE, return_tensors=True, **SHORT)[0].keys() == {"generated_token_ids"}


def test_a_prefix_is_not_in_the_source_that_tells_the_case(folder):
    pipe = pipeline(TASK, model=folder, device="cpu")
    pipe.prefix = "say The Cat : "
    before, after = (pipe("to a dog", **SHORT, **asked) for asked in ({}, {"restore_surface": True}))
    assert after[0]["generated_text"] == restore_surface(before[0]["generated_text"], "to a dog")


def test_streams_need_words_as_they_come(pipe):
    for name in ("replace_unknown", "restore_surface"):
        with pytest.raises(ValueError, match=f"`streamer`: `{name}` needs the whole output"):
            pipe("the cat", streamer=TextStreamer(pipe.tokenizer), num_beams=1, **{name: True})


@pytest.mark.parametrize("name", ["prefix_allowed_tokens_fn", "decoder_input_ids"])
def test_arguments_of_one_text_are_refused_for_several(name):
    pipe = text2text(tiny_bart())
    value = {"prefix_allowed_tokens_fn": lambda text, ids: [5, 6], "decoder_input_ids": torch.tensor([[1, 5]])}[name]
    with pytest.raises(ValueError, match=f"`{name}` belongs to one text"):
        pipe(["the cat", "", "a dog"], **{name: value})
    assert pipe("the cat", max_new_tokens=3, **{name: value}) == pipe(["the cat"], max_new_tokens=3, **{name: value})


def test_max_length_of_the_call_wins_over_the_checkpoint_s_max_new_tokens():
    model = tiny_bart()
    model.generation_config.max_new_tokens = 9
    model.generation_config.eos_token_id = None
    pipe = text2text(model)
    (record,) = pipe("the cat", max_length=4, num_beams=1, return_tensors=True)
    assert len(record["generated_token_ids"]) == 4


@pytest.mark.parametrize("options", [{"max_new_tokens": 400}, {"max_length": 400}, {"max_new_tokens": 300}])
@pytest.mark.parametrize("begun", [1, 3])
def test_no_more_tokens_than_the_decoder_has_positions(options, begun):
    model = tiny_bart()
    model.generation_config.eos_token_id = None
    positions = model.config.max_position_embeddings
    start = {"decoder_input_ids": torch.tensor([[2, 5, 6]])} if begun == 3 else {}
    (record,) = text2text(model)("the cat", num_beams=1, return_tensors=True, **options, **start)
    assert len(record["generated_token_ids"]) == positions + 1


def test_stop_strings_get_the_tokenizer():
    tokenizer = train_tokenizer(["the cat sat on the mat, and a dog sat too"] * 3, 300, "bpe")
    model = tiny_bart()
    model.resize_token_embeddings(len(tokenizer))
    pipe = text2text(model, tokenizer)
    whole = pipe("the cat", num_beams=1, max_new_tokens=8)[0]["generated_text"]
    stopped = pipe("the cat", num_beams=1, max_new_tokens=8, stop_strings=[whole[:2]])[0]["generated_text"]
    assert whole[:2] in stopped and len(stopped) <= len(whole)
    with pytest.raises(ValueError, match="with one of words, pass `stop_sequence`"):
        text2text(tiny_bart())("the cat", stop_strings=["cat"])


def test_series_and_arrays_are_lists():
    pipe = text2text(tiny_bart())
    expected = pipe(["the cat", "", "a dog"], max_new_tokens=3)
    assert pipe(pandas.Series(["the cat", None, "a dog"]), max_new_tokens=3) == expected
    assert pipe(np.array(["the cat", "", "a dog"]), max_new_tokens=3) == expected
    with pytest.raises(ValueError, match="say which column"):
        pipe(pandas.DataFrame({"text": ["the cat"]}))
