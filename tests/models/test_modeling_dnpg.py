from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput

from hf_paraphrase.models.dnpg.configuration_dnpg import DnpgConfig
from hf_paraphrase.models.dnpg.levels import count_template_positions, draw_levels
from hf_paraphrase.models.dnpg.modeling_dnpg import DnpgForConditionalGeneration, DnpgModel
from hf_paraphrase.models.search.beam_search import beam_search

from . import naive_dnpg
from .modeling_mixin import SOURCES, TARGETS, Seq2SeqMixin, check_double_precision
from .small_batches import words_of


class TestDnpg(Seq2SeqMixin):
    config_class = DnpgConfig
    base_class = DnpgModel
    model_class = DnpgForConditionalGeneration
    variants = {
        # Without copying, for what copies takes ids from `vocab_size` on.
        "default": {"copy": False},
        "copying": {},
        "untied": {"copy": False, "tie_word_embeddings": False, "sentence_layers": 2, "window_size": 5},
    }
    opt_outs = {
        "inputs_embeds": "a word that is copied must be known",
        "separate_embeddings": "source and target have one table of words",
    }

    def small_config(self, **overrides):
        sizes = {"vocab_size": 10, "hidden_size": 8, "num_layers": 2, "sentence_layers": 1, "num_heads": 4}
        others = {"intermediate_size": 12, "separator_size": 3, "separator_layers": 1, "aggregator_size": 5}
        return DnpgConfig(**{**sizes, **others, **overrides})

    def small_model(self, variant: str = "default", **overrides):
        model = super().small_model(variant, **overrides)
        # Normalisations of random gain would let through little of what came before the last of them.
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                torch.nn.init.uniform_(module.weight, 0.8, 1.2)
        return model

    def test_double_precision_is_kept(self, variant):
        """But for the separator, of whose scores the levels are a step."""
        model = self.small_model(variant)
        model.model.encoder.separator.requires_grad_(False)
        check_double_precision(model, self.batch())

    def test_every_parameter_learns(self, variant):
        """With levels drawn so that both have words enough to choose among."""
        torch.manual_seed(2)
        super().test_every_parameter_learns(variant)

    @pytest.mark.parametrize("row", range(len(SOURCES)))
    @pytest.mark.parametrize("levels", [None, [0, 1, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    def test_equals_the_equations(self, variant, row, levels):
        model = self.small_model(variant).double()
        ids, inputs = SOURCES[row], [1, *TARGETS[row][:-1]]
        if model.config.copy:
            ids = [10 if word == 7 else word for word in ids]  # outside the vocabulary
            inputs = [10 if word == 7 else word for word in inputs]
        known = [min(word, 3) if word > 9 else word for word in ids]
        scores = naive_dnpg.level_scores(model, known)
        expected_levels = [int(score.argmax()) for score in scores] if levels is None else levels[: len(ids)]
        expected_levels[-1] = 1  # the end mark
        expected_levels = [0 if word > 9 else level for word, level in zip(ids, expected_levels, strict=True)]
        table = model.get_input_embeddings().weight
        rows = torch.cat((table, table[3:4]))
        with torch.no_grad():
            outputs = model(
                torch.tensor([ids]),
                source_levels=None if levels is None else torch.tensor([levels[: len(ids)]]),
                decoder_input_ids=torch.tensor([inputs]),
                output_levels=True,
            )
            with reading(model, rows):
                expected, aggregated = naive_dnpg.dnpg(model, ids, expected_levels, inputs)
        assert outputs.source_levels[0].tolist() == expected_levels
        torch.testing.assert_close(outputs.source_level_logits[0], torch.stack(scores), rtol=0, atol=1e-9)
        torch.testing.assert_close(outputs.target_level_logits[0], aggregated, rtol=0, atol=1e-9)
        assert outputs.target_levels[0].tolist() == aggregated.argmax(-1).tolist()
        torch.testing.assert_close(outputs.logits[0].exp(), expected.exp(), rtol=0, atol=1e-9)
        torch.testing.assert_close(outputs.logits.exp().sum(-1), torch.ones(1, len(inputs)).double())

    def test_levels_only_on_request(self):
        outputs = self.small_model()(**self.batch())
        assert outputs.source_levels is None and outputs.target_level_logits is None

    def test_the_loss_is_that_of_the_logits(self, variant):
        model, batch = self.small_model(variant), self.batch()
        if model.config.copy:
            batch["input_ids"][0, 1], batch["labels"][0, 0] = 10, 10
        outputs = model(**batch)
        expected = torch.nn.functional.nll_loss(outputs.logits.flatten(0, 1), batch["labels"].flatten())
        torch.testing.assert_close(outputs.loss, expected)

    def test_both_implementations_of_attention_agree(self, variant):
        model, batch = self.small_model(variant), self.batch("left")
        assert model.config._attn_implementation == "sdpa"
        fast = model(**batch).logits
        model.set_attn_implementation("eager")
        torch.testing.assert_close(model(**batch).logits, fast)

    def test_drawn_levels_are_seeded_and_those_of_evaluation_are_not_drawn(self):
        model, batch = self.small_model().train(), self.batch()
        drawn = []
        for seed in (1, 1, 2, 3, 4):
            torch.manual_seed(seed)
            drawn.append(model(**batch, output_levels=True).source_levels)
        assert torch.equal(drawn[0], drawn[1]) and not all(torch.equal(drawn[0], other) for other in drawn[2:])
        model.eval()
        first, second = (model(**batch, output_levels=True).source_levels for _ in range(2))
        assert torch.equal(first, second)

    @pytest.mark.parametrize("level", [0, 1])
    def test_padding_teaches_the_separator_nothing(self, variant, level):
        """Of a row with words of one level alone, and no end mark; the noise of its words comes first."""
        model = self.small_model(variant, dropout=0.0).double().train()
        score = model.model.encoder.separator.score
        torch.nn.init.constant_(score.bias, 0.0)
        score.bias.data[level] = 4.0
        ids, labels, gradients = torch.tensor([[5, 6, 7, 8]]), torch.tensor([TARGETS[0]]), []
        for padding in (0, 3):
            inputs, mask = (torch.nn.functional.pad(x, (0, padding)) for x in (ids, torch.ones_like(ids)))
            torch.manual_seed(0)
            model.zero_grad()
            outputs = model(inputs, attention_mask=mask, labels=labels, output_levels=True)
            assert outputs.source_levels[0, :4].tolist() == [level] * 4
            outputs.loss.backward()
            gradients.append(score.weight.grad)
        assert gradients[0].abs().max() > 1e-6
        torch.testing.assert_close(gradients[1], gradients[0], rtol=0, atol=1e-12)

    @pytest.mark.parametrize("num_beams", [1, 3])
    def test_a_kept_template_is_written_word_for_word(self, variant, num_beams):
        model, levels = self.small_model(variant), torch.tensor([[1, 0, 0, 1, 1, 1]])
        for search in (None, beam_search):
            options = {"num_beams": num_beams, "custom_generate": search, "use_cache": True}
            written = [
                model.generate(
                    torch.tensor([SOURCES[0]]),
                    source_levels=levels,
                    levels="phrase",
                    max_new_tokens=30,
                    **{**options, "use_cache": use_cache},
                )[0, 1:].tolist()
                for use_cache in (True, False)
            ]
            assert written[0] == written[1]
            assert written[0][0] == 5 and written[0][1] != 8
            if 2 in written[0]:
                assert written[0][-3:] == [8, 9, 2] and len(written[0]) >= 5
            else:
                assert len(written[0]) == 30  # in a phrase without an end

    def test_no_beam_leaves_a_kept_template(self, variant):
        """Where it leaves one word to write, all others are impossible, also those that could be copied elsewhere."""
        model = self.small_model(variant)
        logits = model(
            torch.tensor([SOURCES[0]]),
            source_levels=torch.tensor([[1, 0, 0, 1, 1, 1]]),
            levels="phrase",
            decoder_input_ids=torch.tensor([[1, 5, 6, 8, 9]]),
        ).logits[0]
        only = {0: 5, 3: 9, 4: 2}  # behind the start, 8 and 9
        for place, word in only.items():
            assert logits[place].isfinite().nonzero().flatten().tolist() == [word]
            torch.testing.assert_close(logits[place, word].item(), 0.0, rtol=0, atol=1e-5)
        assert 8 not in logits[1].isfinite().nonzero() and 8 in logits[2].isfinite().nonzero()

    def test_kept_phrases_are_written_each_once_and_before_the_end(self, variant):
        """6 and 7 by the phrase level, which has no other words; what the end would have got goes to them."""
        model, ids, levels = self.small_model(variant), torch.tensor([SOURCES[0]]), torch.tensor([[1, 0, 0, 1, 1, 1]])
        inputs = torch.tensor([[1, 6, 4, 7, 5]])
        outputs = model(ids, source_levels=levels, levels="sentence", decoder_input_ids=inputs, output_levels=True)
        states = model.model(ids, source_levels=levels, decoder_input_ids=inputs).last_hidden_state[0]
        sentence = model.lm_head(states[:, 8:]).softmax(-1)
        p_phrase, p_sentence = outputs.target_level_logits[0].softmax(-1).unbind(-1)
        torch.testing.assert_close(outputs.logits.exp().sum(-1), torch.ones(1, 5))
        for place, missing in enumerate(([6, 7], [7], [7], [], [])):
            found = outputs.logits[0, place].exp()
            if not missing:
                torch.testing.assert_close(found, sentence[place])
                continue
            template = p_sentence[place] * sentence[place]
            end, template[2] = template[2].clone(), 0.0
            own = found - template
            others = [word for word in range(10) if word not in missing]
            torch.testing.assert_close(own[others], torch.zeros(len(others)), rtol=0, atol=1e-6)
            torch.testing.assert_close(own[missing].sum(), p_phrase[place] + end)
            assert (own[missing] > 1e-4).all() and found[2] == 0

    @pytest.mark.parametrize(
        "options", [{}, {"num_beams": 3, "num_return_sequences": 3}, {"do_sample": True}], ids=str
    )
    def test_kept_phrases_survive_every_search(self, variant, options):
        """Also a word that stands twice, and one outside the vocabulary."""
        model = self.small_model(variant)
        ids = [5, 6, 6, 8, 10 if model.config.copy else 7, 9, 2]
        inputs = {"source_levels": [[1, 0, 0, 1, 0, 1, 1]], "levels": "sentence", "max_new_tokens": 60}
        torch.manual_seed(0)
        for use_cache in (True, False):
            for search in {None, beam_search if "num_beams" in options else None}:
                found = model.generate(
                    torch.tensor([ids]), **inputs, **options, use_cache=use_cache, custom_generate=search
                )
                for words in words_of(found):
                    assert words.count(6) >= 2 and ids[4] in words

    def test_levels_by_hand_are_names_or_numbers(self):
        model, ids = self.small_model(), torch.tensor([SOURCES[0], SOURCES[0]])
        names = ["sentence", "phrase", "phrase", "sentence", "sentence"]
        options = {"levels": "phrase", "max_new_tokens": 7, "num_beams": 2}
        expected = model.generate(ids, source_levels=torch.tensor([[1, 0, 0, 1, 1, 1]] * 2), **options)
        for given in ([names] * 2, [[1, 0, 0, 1, 1, 1], names]):
            assert torch.equal(model.generate(ids, source_levels=given, **options), expected)
        one = model.generate(input_ids=ids[:1], source_levels=names, **options)
        assert torch.equal(one, expected[:1])
        with pytest.raises(ValueError, match=r"has levels for \[2\] tokens, but the sources have \[6\]"):
            model.generate(ids[:1], source_levels=["phrase", "phrase"], **options)
        with pytest.raises(ValueError, match="must hold 'phrase' .0. or 'sentence'"):
            model.generate(ids[:1], source_levels=["word"] * 6, **options)

    def test_control_is_the_same_in_a_batch(self, variant):
        model = self.small_model(variant)
        for levels in ("phrase", "sentence", "both"):
            for options in ({}, {"num_beams": 3, "custom_generate": beam_search}):
                options |= {"levels": levels, "max_new_tokens": 8}
                batch = self.batch("left")
                batch.pop("labels")
                together = words_of(model.generate(**batch, **options))
                assert together == [
                    words_of(model.generate(**self.alone(row), **options))[0] for row in range(len(SOURCES))
                ]


@contextmanager
def reading(model, rows):
    """Let the model's table have a row for a word outside the vocabulary, which is read as the unknown one."""
    table = model.get_input_embeddings()
    weight, table.weight = table.weight, torch.nn.Parameter(rows)
    try:
        yield
    finally:
        table.weight = weight


@pytest.mark.parametrize(
    ("mask", "is_phrase", "expected"),
    [
        ([1, 1, 1, 1, 1], [0, 1, 1, 1, 0], [0, 1, 1, 1, 2]),
        ([1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 2, 2]),
        # Padding between two words of a phrase does not part them.
        ([1, 0, 1, 1], [1, 0, 1, 0], [0, None, 0, 1]),
    ],
)
def test_a_run_of_phrase_words_is_one_place_of_the_template(mask, is_phrase, expected):
    places = count_template_positions(torch.tensor([mask]).bool(), torch.tensor([is_phrase]).bool())[0].tolist()
    assert [place for place, real in zip(places, mask, strict=True) if real] == [
        place for place in expected if place is not None
    ]


def test_gumbel_softmax_draws_as_often_as_the_softmax_says():
    torch.manual_seed(0)
    logits = torch.tensor([0.3, -0.9], requires_grad=True)
    drawn = draw_levels(logits.expand(20_000, 2), temperature=0.7)
    assert set(drawn.unique().tolist()) == {0.0, 1.0} and (drawn.sum(-1) == 1).all()
    torch.testing.assert_close(drawn.mean(0), logits.softmax(-1), rtol=0, atol=0.01)
    (drawn @ torch.tensor([1.0, 0.0])).mean().backward()
    assert logits.grad[0] > 0 > logits.grad[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.5}, "`dropout` must be in"),
        ({"sentence_layers": 0}, "`sentence_layers` must be at least 1"),
        ({"num_heads": 5}, r"`num_heads` \(5\) must divide `hidden_size` \(448\)"),
        ({"hidden_size": 27}, "must be even"),
        ({"window_size": 4}, "must be odd"),
        ({"separator_temperature": 0.0}, "greater than 0"),
        ({"unk_token_id": None}, "must not be null"),
    ],
)
def test_impossible_configurations_are_refused(options, message):
    with pytest.raises(Exception, match=message):
        DnpgConfig(**options)


def test_mistakes_are_named():
    model, ids = DnpgForConditionalGeneration(TestDnpg().small_config()), torch.tensor([[3, 2]])
    with pytest.raises(ValueError, match="`levels` must be phrase, sentence or both, not 'word'"):
        model.generate(ids, levels="word", max_new_tokens=2)
    with pytest.raises(ValueError, match="`source_levels` must hold 0 .phrase. or 1"):
        model(ids, source_levels=torch.tensor([[0, 2]]), labels=ids)
    with pytest.raises(ValueError, match="`input_ids` is missing"):
        model(decoder_input_ids=ids)
    with pytest.raises(ValueError, match="`input_ids` holds the id 40; words outside the vocabulary of 10"):
        model(ids + 37, labels=ids)
    with pytest.raises(ValueError, match="it carries the levels"):
        model(encoder_outputs=BaseModelOutput(torch.zeros(1, 2, 8)), decoder_input_ids=ids)
