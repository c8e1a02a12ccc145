from __future__ import annotations

import random

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast, pipeline

from hf_paraphrase import (
    EditLstmConfig,
    EditLstmForConditionalGeneration,
    FsetConfig,
    FsetForConditionalGeneration,
    HierarchicalAutoencoderConfig,
    HierarchicalAutoencoderForConditionalGeneration,
    HierarchicalLmConfig,
    HierarchicalLmForConditionalGeneration,
    HierarchicalLmTokenizer,
    ResidualLstmConfig,
    ResidualLstmForConditionalGeneration,
)
from hf_paraphrase.generation.engine import generate_outputs
from hf_paraphrase.models.layers.portable import can
from hf_paraphrase.models.search.generation_request import GenerationRequest
from hf_paraphrase.models.text.encoded_inputs import encode_inputs
from hf_paraphrase.models.text.unknown_words import check_replaceable, find_attended, put_words, read_words_of_source
from hf_paraphrase.tokenization import train_tokenizer, train_word_tokenizer

from .tiny import SPECIAL_IDS, WORDS, save, tiny_bart, tiny_model, tiny_t5, word_tokenizer
from .without_package import run_without_the_package

TEXTS = ["how do i learn Zürich", "the cat QUUX Blorp ?", "x", "do Gothenburg sat on mat"]
PAIRS = [("the cat", "a Dog xyzzy"), ("how do i", "make bread"), ("Fnord", "sat"), ("x y z", "z y")]


def tiny_marian():
    torch.manual_seed(0)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = MarianConfig(
        vocab_size=len(WORDS),
        decoder_start_token_id=1,
        forced_eos_token_id=None,
        init_std=1.0,
        max_position_embeddings=64,
        **sizes,
        **heads,
        **SPECIAL_IDS,
    )
    return MarianMTModel(config).eval()


def residual(config_class=ResidualLstmConfig, model_class=ResidualLstmForConditionalGeneration, **fields):
    torch.manual_seed(0)
    sizes = {"embedding_size": 8, "hidden_size": 8, "num_layers": 2, "initializer_range": 0.8}
    return model_class(config_class(vocab_size=len(WORDS), **sizes, **fields)).eval()


def fset():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "provider_layers": 1, "provider_heads": 2}
    # Wider, heads would each look at one word alone, narrower at all alike: either way several words would be equal.
    config = FsetConfig(vocab_size=len(WORDS), initializer_range=0.2, **sizes, **SPECIAL_IDS)
    return FsetForConditionalGeneration(config).eval()


MODELS = {
    "residual_lstm": lambda: residual(attention="additive"),
    "edit_lstm": lambda: residual(EditLstmConfig, EditLstmForConditionalGeneration, attention="additive"),
    "copy_editor": lambda: residual(EditLstmConfig, EditLstmForConditionalGeneration, attention="additive", copy=True),
    "fset": fset,
    "bart": tiny_bart,
    "t5": tiny_t5,
    "marian": tiny_marian,
}


# As wide as the scores of the others are.
BIASES = {"marian": 15.0, "bart": 6.0, "t5": 6.0}


def write_unknown(model, bias=4.0):
    """Let a model write unknown words often, once its generation config no longer bans them."""
    model.generation_config.update(suppress_tokens=[3], sequence_bias=[[[3], bias]])
    return model


@pytest.fixture(params=MODELS)
def model(request):
    model = MODELS[request.param]()
    return write_unknown(model, BIASES.get(request.param, 4.0))


def encode(model, tokenizer, texts=TEXTS):
    pairs = PAIRS[: len(texts)] if can(model.config, "reads_pairs") else None
    return encode_inputs(tokenizer, texts, pairs, model)


def naive_attended(model, inputs, tokenizer, **kwargs) -> tuple[torch.Tensor, torch.Tensor]:
    """By the attention that the search itself kept of every step, of the beam that each step of the result was on."""
    options = {"return_dict_in_generate": True, "output_attentions": True, "suppress_tokens": None, **kwargs}
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    found = model.generate(**inputs, **options)
    model.set_attn_implementation(implementation)
    sequences = found.sequences
    returned = len(sequences) // len(inputs["input_ids"])
    attended = torch.full_like(sequences, -1)
    for row, sequence in enumerate(sequences):
        source = inputs["input_ids"][row // returned].tolist()
        mask = inputs["attention_mask"][row // returned].tolist()
        for step, layers in enumerate(found.cross_attentions):
            if step + 1 >= len(sequence) or sequence[step + 1] != tokenizer.unk_token_id:
                continue
            beam = row if found.get("beam_indices") is None else int(found.beam_indices[row, step])
            weights = layers[-1][beam, :, -1].mean(0).tolist()
            words = [place for place, word in enumerate(source) if mask[place] and word not in (0, 1, 2)]
            best = max(words, key=weights.__getitem__)
            attended[row, step + 1] = sum(mask[:best])
    return sequences, attended


SEARCHES = {
    "greedy": {"num_beams": 1},
    "beam": {"num_beams": 4, "num_return_sequences": 3},
    "sampling": {"do_sample": True, "num_beams": 1, "num_return_sequences": 4},
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("side", ["right", "left"])
def test_words_are_those_that_the_search_attended_to(model, search, side):
    tokenizer = word_tokenizer(padding_side=side)
    inputs, _ = encode(model, tokenizer)
    torch.manual_seed(1)
    sequences, expected = naive_attended(model, inputs, tokenizer, max_new_tokens=7, **SEARCHES[search])
    assert (expected >= 0).any()
    found = find_attended(model, inputs, sequences.unflatten(0, (len(TEXTS), -1)), tokenizer)
    assert found.flatten(0, 1).tolist() == expected.tolist()


def request_all(**kwargs) -> GenerationRequest:
    return GenerationRequest.from_kwargs(num_beams=3, max_new_tokens=7, num_return_sequences=2, **kwargs)


def test_a_text_has_the_words_of_its_source_where_the_model_wrote_unknown_ones(model):
    """Engine, pipeline and a reading of their ids agree, in batches and one by one; the attention stays as it was."""
    tokenizer, before = word_tokenizer(), model.config._attn_implementation
    pairs = PAIRS if can(model.config, "reads_pairs") else None
    request = request_all(replace_unknown=True)
    outputs = [
        [output.text for output in group] for group in generate_outputs(model, tokenizer, TEXTS, request, pairs=pairs)
    ]
    for place, text in enumerate(TEXTS):
        inputs, (outside,) = encode_inputs(tokenizer, [text], None if pairs is None else [pairs[place]], model)
        sequences, attended = naive_attended(
            model, inputs, tokenizer, num_beams=3, max_new_tokens=7, num_return_sequences=2
        )
        for ids, places, output in zip(sequences.tolist(), attended.tolist(), outputs[place], strict=True):
            words = [
                text.split()[number] if number >= 0 else outside.get(word) or WORDS[word]
                for word, number in zip(ids, places, strict=True)
                if word not in (0, 1, 2)
            ]
            assert output.split() == words
    assert not any("<unk>" in output for group in outputs for output in group)
    assert model.config._attn_implementation == before
    pipe = pipeline("text2text-generation", model=model, tokenizer=tokenizer)
    options = dict(request.parameters) | {"replace_unknown": True}
    for batch_size in (1, 3):
        if pairs is None:
            found = pipe(TEXTS, batch_size=batch_size, **options)
        else:
            found = [pipe(text, retrieved=[pair], **options) for text, pair in zip(TEXTS, pairs, strict=True)]
        assert [[record["generated_text"].strip() for record in group] for group in found] == outputs


def test_without_being_asked_nothing_changes(model):
    tokenizer, pairs = word_tokenizer(), PAIRS if can(model.config, "reads_pairs") else None
    outputs = generate_outputs(model, tokenizer, TEXTS, request_all(), pairs=pairs)
    inputs, words = encode(model, tokenizer)
    known = {word for row in words for word in row.values()} | set(WORDS)
    assert {word for group in outputs for output in group for word in output.text.split()} <= known
    assert 3 not in model.generate(**inputs, **request_all().generate_kwargs(model, tokenizer))


def test_only_the_mark_of_unknown_words_is_allowed_again():
    model, tokenizer = MODELS["residual_lstm"](), word_tokenizer()
    model.generation_config.suppress_tokens = [3, 4]
    assert request_all(replace_unknown=True).generate_kwargs(model, tokenizer)["suppress_tokens"] == [4]
    request = request_all(replace_unknown=True, suppress_tokens=[3])
    assert request.generate_kwargs(model, tokenizer)["suppress_tokens"] is None
    assert "suppress_tokens" not in request_all().generate_kwargs(model, tokenizer)


@pytest.mark.parametrize("decoding", ["diverse_beam", "dips"])
def test_other_searches_replace_words_too(decoding):
    model, tokenizer = write_unknown(MODELS["residual_lstm"]()), word_tokenizer()
    request = request_all(replace_unknown=True, decoding=decoding)
    groups = generate_outputs(model, tokenizer, ["Zürich Blorp", "QUUX"], request)
    words = [{word for output in group for word in output.text.split()} - set(WORDS) for group in groups]
    assert words[0] and words[0] <= {"Zürich", "Blorp"} and words[1] == {"QUUX"}


def test_hand_set_attention_copies_the_word_it_looks_at():
    """All weight on the last word, then all on the first: what is a mark or padding never counts."""
    model, tokenizer = MODELS["residual_lstm"](), train_word_tokenizer(["how do i get to , 's"], 30)
    inputs = tokenizer(["Get to Stockholm's Gröna-Lund", "to X"], padding=True, return_tensors="pt")
    words = read_words_of_source(inputs, ["Get to Stockholm's Gröna-Lund", "to X"])
    assert words == [["Get", "to", "Stockholm", "'s", "Gröna", "-", "Lund", ""], ["to", "X", ""]]
    length = inputs["input_ids"].shape[1]

    def attend(places):
        weights = torch.nn.functional.one_hot(torch.tensor(places), length).float()
        return lambda **kwargs: type("Outputs", (), {"cross_attentions": (weights.unsqueeze(1),)})

    model.forward = attend([[2, 6, 0], [1, 7, 2]])
    sequences = torch.tensor([[[1, 3, 3, 3]], [[1, 3, 4, 3]]])
    attended = find_attended(model, inputs, sequences, tokenizer)
    # In the second row the weight is on padding and on the end mark: the first word it is.
    assert attended.tolist() == [[[-1, 2, 6, 0]], [[-1, 1, -1, 0]]]
    ids, known = put_words(sequences[0, 0].tolist(), attended[0, 0].tolist(), words[0], {40: "kept"})
    assert [known.get(word, word) for word in ids] == [1, "Stockholm", "Lund", "Get"] and known[40] == "kept"


def test_words_are_read_as_they_stand_in_the_text():
    tokenizer = train_word_tokenizer(["how do i get to , 's"], 30)
    text = "  How to Zu\u0308rich’s “GROẞE” x-1,000.5  "
    (words,) = read_words_of_source(tokenizer([text], return_tensors="pt"), [text])
    assert words == ["How", "to", "Zu\u0308rich", "’s", "“", "GROẞE", "”", "x", "-", "1,000.5", ""]
    sub_words = train_tokenizer(["how do i get to"], 280, "bpe")
    (words,) = read_words_of_source(sub_words(["get Rome"], return_tensors="pt"), ["get Rome"])
    assert set(words) == {"get", "Rome", ""}


def test_a_trained_model_copies_names_that_it_never_saw():
    """It learns to turn sentences around. Where the names are that it knows, it looks for those that it does not."""
    known = ["Anna", "Bob", "Carl", "Dora", "Emil", "Fred"]
    tokenizer = train_word_tokenizer([f"yes no i saw today was seen {' '.join(known)}"], 30)
    torch.manual_seed(0)
    draw = random.Random(0)

    def rows(count, share_known):
        names = [
            draw.choice(known) if draw.random() < share_known else "".join(draw.choices("gklmnprst", k=5)).title()
            for _ in range(count)
        ]
        before = [" ".join(draw.choices(["yes", "no"], k=draw.randrange(3))) for _ in names]
        sources = [f"{words} i saw {name} today".strip() for words, name in zip(before, names, strict=True)]
        return names, sources, [f"{name} was seen" for name in names]

    config = ResidualLstmConfig(
        vocab_size=len(tokenizer), embedding_size=24, hidden_size=24, num_layers=1, residual_interval=0,
        attention="additive", dropout=0.0, initializer_range=0.2, decoder_start_token_id=1, **SPECIAL_IDS,
    )  # fmt: skip
    model = ResidualLstmForConditionalGeneration(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(300):
        _, sources, targets = rows(16, share_known=0.7)
        batch = tokenizer(sources, padding=True, return_tensors="pt")
        labels = tokenizer(targets, return_tensors="pt")["input_ids"]
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval().generation_config.update(suppress_tokens=[3], max_new_tokens=10)
    names, sources, targets = rows(20, share_known=0)
    request = GenerationRequest(parameters={"num_beams": 2}, replace_unknown=True)
    written = [group[0].text for group in generate_outputs(model, tokenizer, sources, request)]
    kept = [name in text for name, text in zip(names, written, strict=True)]
    assert sum(kept) / len(kept) > 0.9
    plain = [group[0].text for group in generate_outputs(model, tokenizer, sources, GenerationRequest())]
    assert not any(name in text for name, text in zip(names, plain, strict=True))


def test_what_cannot_be_done_is_said():
    tokenizer = word_tokenizer()
    for model in (
        residual(attention=None),
        tiny_model(HierarchicalAutoencoderConfig, HierarchicalAutoencoderForConditionalGeneration),
        tiny_model(HierarchicalLmConfig, HierarchicalLmForConditionalGeneration),
    ):
        with pytest.raises(ValueError, match="`replace_unknown`: this .* attends to no words"):
            request_all(replace_unknown=True).generate_kwargs(model, tokenizer)
    with pytest.raises(ValueError, match="`replace_unknown` needs a tokenizer that knows where its tokens stand"):
        check_replaceable(MODELS["t5"](), HierarchicalLmTokenizer.from_texts(["a"], 20))
    with pytest.raises(ValueError, match="`streamer`: `replace_unknown` needs the whole output"):
        request_all(replace_unknown=True, streamer=object())
    for build in MODELS.values():
        check_replaceable(build(), tokenizer)


def test_a_tokenizer_without_an_unknown_word_has_nothing_to_replace():
    backend = Tokenizer(models.BPE({word: number for number, word in enumerate(WORDS)}, []))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", eos_token="</s>")
    sequences = torch.tensor([[[1, 3, 2]]])
    assert find_attended(MODELS["t5"](), {}, sequences, tokenizer).tolist() == [[[-1, -1, -1]]]


def test_a_checkpoint_replaces_words_without_this_package(tmp_path):
    model = write_unknown(MODELS["residual_lstm"]())
    model.generation_config.update(max_new_tokens=7, num_beams=3)
    texts, options = ["Zürich", "QUUX"], {"replace_unknown": True, "restore_surface": True}
    folder = save(model, tmp_path / "model")
    expected = pipeline("text2text-generation", model=folder)(texts, **options)
    _, *found = run_without_the_package(folder, "text2text-generation", texts, tmp_path, **options)
    assert found == [expected] * 2
    assert all(word in record["generated_text"] for record, word in zip(expected, ("Zürich", "QUUX"), strict=True))
