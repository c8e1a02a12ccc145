from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, GenerationConfig

from hf_paraphrase.common.fields import read_yaml
from hf_paraphrase.papers import find_paper_rows
from hf_paraphrase.training.recipe import list_recipes, load_recipe
from hf_paraphrase.training.tasks import TASKS
from tests.models.tiny import shrink

FOLDER = Path(__file__).resolve().parents[2] / "hub_configs"
JSON_FILES = ("config.json", "generation_config.json")
NAMES = list(list_recipes())
FOLDERS = sorted(path.name for path in FOLDER.iterdir())
# Corpus -> words, of Table 1 of Prakash et al. 2016.
PRAKASH_WORDS = {"mscoco": 30_332, "ppdb": 38_279, "wikianswers": 50_000}
PRAKASH = [name for name in NAMES if name.removesuffix("-2layer").split("-lstm-")[-1] in PRAKASH_WORDS]


def read_files(name):
    """What the files of a recipe hold themselves."""
    folder = FOLDER / name
    files = [json.loads(path.read_text()) if (path := folder / file).is_file() else {} for file in JSON_FILES]
    return [*files, read_yaml(folder / "training.yaml")]


CHILDREN = [name for name in FOLDERS if "extends" in read_files(name)[-1]]
VARIANTS = {name: folder for folder in FOLDERS for name in read_files(folder)[-1].get("variants", ())}


def test_recipes_are_folders_and_their_variants():
    assert sorted([*FOLDERS, *VARIANTS]) == NAMES


@pytest.mark.parametrize("name", VARIANTS)
def test_no_variant_repeats_its_folder(name):
    parent = load_recipe(VARIANTS[name])
    inherited = {**asdict(parent.training), **parent.model_config, **parent.generation_config}
    own = read_files(VARIANTS[name])[-1]["variants"][name]
    assert own and not [field for field, value in own.items() if inherited.get(field, "missing") == value]


@pytest.mark.parametrize("name", CHILDREN)
def test_no_recipe_repeats_its_parent(name):
    """A field that holds what the parent has, by itself or by default, and a file without a field, say nothing."""
    model, generation, training = read_files(name)
    parent = load_recipe(FOLDER / training.pop("extends"))
    if "model_type" in model:
        assert model["model_type"] != parent.model_config["model_type"]
    parts = [({}, model)] if "model_type" in model else [(parent.model_config, model)]
    training.pop("variants", None)
    parts += [(parent.generation_config, generation), (asdict(parent.training), training)]
    for inherited, own in parts:
        assert not [field for field, value in own.items() if field in inherited and inherited[field] == value]
    assert {} not in [json.loads(path.read_text()) for path in (FOLDER / name).glob("*.json")]


def make_model(name):
    """The model of a recipe, without its numbers."""
    recipe = load_recipe(FOLDER / name)
    with torch.device("meta"):
        return TASKS[recipe.training.task].auto_class.from_config(recipe.make_config())


@pytest.mark.parametrize("name", NAMES)
def test_recipe_describes_a_model(name):
    assert make_model(name).num_parameters() > 0


@pytest.mark.parametrize("name", NAMES)
def test_recipe_builds_a_small_model(name, tmp_path):
    """Everything that a training takes from the three files, and a checkpoint says; unknown fields fail on reading."""
    recipe = load_recipe(FOLDER / name)
    heads = {field: 1 for field in recipe.model_config if field.endswith("_heads")}
    small = recipe.override(shrink(recipe.model_config) | heads)
    small.save(tmp_path / "recipe")
    assert load_recipe(tmp_path / "recipe").training == recipe.training
    auto_class = TASKS[recipe.training.task].auto_class
    model = auto_class.from_config(small.make_config())
    model.generation_config = small.make_generation_config()
    model.save_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    for field, value in small.model_config.items():
        assert getattr(config, field) == value, field
    loaded = auto_class.from_pretrained(tmp_path)
    assert type(loaded) is type(model)
    for weight, saved in zip(loaded.state_dict().values(), model.state_dict().values(), strict=True):
        assert torch.equal(weight, saved)
    if model.can_generate():
        generation = GenerationConfig.from_pretrained(tmp_path)
        for field, value in recipe.generation_config.items():
            assert getattr(generation, field) == value, field


@pytest.mark.parametrize("corpus", PRAKASH_WORDS)
def test_the_rows_of_table_3_of_prakash_2016_are_there(corpus):
    """Those of two layers have no residual one: it needs more than two (section 5.2)."""
    recipes = {name: load_recipe(FOLDER / name) for name in PRAKASH if f"-{corpus}" in name}
    found = {
        row.model: name for name, recipe in recipes.items() for row in find_paper_rows(recipe.make_config(), corpus)
    }
    kinds = ("sequence to sequence", "attention", "bi-directional", "residual")
    rows = [*((2, kind) for kind in kinds[:2]), *((4, kind) for kind in kinds)]
    assert found.keys() == {f"Prakash et al. 2016, {layers}-layer {kind}, 512 units" for layers, kind in rows}
    # MSCOCO also has a recipe that section 4.2 speaks of and Table 3 leaves out.
    assert recipes.keys() - found.values() == {"bidirectional-lstm-mscoco-2layer"} & recipes.keys()
    for name, recipe in recipes.items():
        assert (recipe.training.dataset, recipe.make_config().vocab_size) == (corpus, PRAKASH_WORDS[corpus]), name


def test_the_open_recipe_mixes_what_may_be_shared():
    recipe = load_recipe(FOLDER / "transformer-open")
    training, config = recipe.training, recipe.make_config()
    assert (config.model_type, config.d_model, config.encoder_layers, config.decoder_layers) == ("marian", 256, 6, 2)
    assert (config.vocab_size, training.tokenizer_model, training.lowercase) == (12_000, "bpe", False)
    files = {corpus.dataset_kwargs["data_files"] for corpus in training.corpora}
    assert files == {f"{name}.tsv" for name in ("mt_eval_mozilla", "tatoeba", "bible_modern", "wikisplit", "onestop")}
    assert all(corpus.licence and corpus.dataset_name == "filtered" for corpus in training.corpora)
    assert sum(corpus.share for corpus in training.corpora) == pytest.approx(1)
    assert (training.dataset, training.dataset_kwargs, training.pairs_per_group) == (None, {}, 1)


def test_figures_in_the_recipes_of_prakash_2016():
    for name in PRAKASH:
        recipe, folder = load_recipe(name), FOLDER / VARIANTS.get(name, name)
        text = (folder / "training.yaml").read_text(encoding="utf-8")
        rows = find_paper_rows(recipe.make_config(), recipe.training.dataset)
        figures = " and ".join(f"{row.scores['bleu_4']} at beam {row.num_beams}" for row in rows)
        said = f"  # {figures or 'trained for the paper (section 4.2), but not in its Table 3'}\n  {name}: "
        assert (said if name in VARIANTS else f"has BLEU {figures}.") in text, name


def test_a_bidirectional_encoder_adds_parameters():
    """Section 4.2 halves its layers; with the map from its states to the decoder's it has 37% more all the same."""

    def size(name):
        model = make_model(name).model
        tables = sum(parameter.numel() for name, parameter in model.named_parameters() if "embed_tokens" in name)
        return model.num_parameters() - tables

    assert size("bidirectional-lstm-mscoco") / size("seq2seq-lstm-mscoco") == pytest.approx(1.37, abs=0.005)


@pytest.mark.parametrize("name", PRAKASH)
def test_settings_of_prakash_2016(name):
    """Section 4.3 and Table 1."""
    recipe = load_recipe(FOLDER / name)
    config, training = recipe.make_config(), recipe.training
    assert (config.hidden_size, config.dropout) == (512, 0.5)
    assert (training.optim, training.learning_rate, training.num_train_epochs) == ("sgd", 1.0, 10)
    assert (training.halving_start_epoch, training.halving_interval_epochs) == (3, 3)
    # Sutskever et al. 2014, section 3.4: the gradient of a mean over sequences is clipped at 5.
    assert (training.loss_normalization, training.max_grad_norm) == ("rows", 5)
    assert recipe.make_generation_config().num_beams == 5


@pytest.mark.parametrize(
    "names", [("transformer-quora", "fset-quora"), ("transformer-5x-quora-small", "fset-quora-small")], ids="-".join
)
def test_the_transformer_has_five_times_the_parameters_of_fset(names):
    """Kazemnejad et al. 2020, section 4.3."""
    recipes = [load_recipe(FOLDER / name) for name in names]
    sizes = [make_model(name).num_parameters() for name in names]
    assert sizes[0] / sizes[1] == pytest.approx(5, rel=0.02)
    assert {recipe.make_config().vocab_size for recipe in recipes} == {8000}
    for field in ("train_batch_size", "max_source_length", "max_target_length", "dataset", "dataset_name"):
        assert getattr(recipes[0].training, field) == getattr(recipes[1].training, field), field


def test_sizes_in_the_paper_index():
    text = (FOLDER.parent / "model_cards" / "PAPERS.md").read_text(encoding="utf-8")
    for name in ("fset-quora", "residual-lstm-quora", "edit-lstm-quora", "copy-editor-quora", "rae-quora"):
        assert f"{make_model(name).num_parameters():,}" in text, name


LSTMS_2020 = ("residual-lstm-quora", "edit-lstm-quora", "copy-editor-quora", "rae-quora", "rbm-quora")


@pytest.mark.parametrize("name", LSTMS_2020)
def test_the_lstms_have_about_twice_the_parameters_of_fset(name):
    """Kazemnejad et al. 2020, section 4.3; those that retrieve are as wide and deep as the one that does not."""
    assert make_model(name).num_parameters() / make_model("fset-quora").num_parameters() == pytest.approx(2, rel=0.1)
    config, plain = (load_recipe(FOLDER / one).make_config() for one in (name, "residual-lstm-quora"))
    for field in ("vocab_size", "embedding_size", "hidden_size", "num_layers", "residual_interval"):
        assert getattr(config, field) == getattr(plain, field), field
    if config.model_type == "edit_lstm":
        assert config.edit_vector_size * 2 == config.hidden_size


@pytest.mark.parametrize("name", ["transformer-quora", *LSTMS_2020[:-1]])
def test_the_baselines_train_as_fset_does(name):
    """Kazemnejad et al. 2020, section 4.3."""
    training, fset = load_recipe(FOLDER / name).training, load_recipe(FOLDER / "fset-quora").training
    assert (training.max_steps, training.train_batch_size) == (fset.max_steps, fset.train_batch_size) == (100_000, 128)
    assert (training.dataset, training.dataset_name) == (fset.dataset, fset.dataset_name)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("coupled-lstm-loose-1direction-snli", 45_403),
        ("coupled-lstm-loose-4directions-snli", 45_403),
        ("coupled-lstm-loose-stacked-snli", 136_003),
        ("coupled-lstm-tight-1direction-snli", 77_953),
        ("coupled-lstm-tight-4directions-snli", 77_953),
        ("coupled-lstm-tight-stacked-snli", 191_203),
    ],
)
def test_coupled_lstms_are_as_large_as_in_liu_2016(name, parameters):
    """Section 5: with SNLI's three labels and without embeddings; 190k for the best, and for one block of loosely
    coupled LSTMs nearly a fifth of the attention LSTM's 232,103."""
    config = AutoConfig.for_model(**load_recipe(FOLDER / name).model_config, num_labels=3)
    assert not config.match_features
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    assert model.num_parameters() - model.get_input_embeddings().weight.numel() == parameters


def test_features_of_pairs_of_words_are_ours_alone():
    """They are not part of the paper, and add two numbers to each of the five gates of its 25 units."""
    recipes = {name: load_recipe(FOLDER / name) for name in NAMES if name.startswith("coupled-lstm")}
    assert [name for name, recipe in recipes.items() if recipe.make_config().match_features] == [
        "coupled-lstm-twitter-features-small"
    ]
    recipe = recipes["coupled-lstm-twitter-features-small"]
    assert recipe.training.freeze_embeddings
    sizes = []
    for match_features in (False, True):
        with torch.device("meta"):
            config = recipe.override({"match_features": match_features}).make_config()
            model = AutoModelForSequenceClassification.from_config(config)
        sizes.append(model.num_parameters() - model.get_input_embeddings().weight.numel())
    assert sizes[1] - sizes[0] == 2 * 5 * 25


FSET = [name for name in NAMES if name.startswith("fset-")]


@pytest.mark.parametrize("name", [*FSET, "edit-lstm-quora", "copy-editor-quora", "rae-quora"])
def test_an_editor_sees_the_answer_in_some_draws(name):
    """Kazemnejad et al. 2020, section 3.3: without (x, y) among the pairs the model ignores them."""
    assert 0 < load_recipe(FOLDER / name).training.self_pair_share < 0.5


@pytest.mark.parametrize("size", ["", "-small"])
def test_reinforcement_goes_on_from_the_recipes_that_it_names(size):
    recipe = load_recipe(FOLDER / f"rbm-quora{size}")
    begun = load_recipe(FOLDER / Path(recipe.training.pretrained).name)
    assert begun.name == f"residual-lstm-quora{size}"
    assert recipe.model_config == begun.model_config | {"dropout": 0.0}
    assert recipe.training.dataset_name == begun.training.dataset_name
    matcher = load_recipe(FOLDER / Path(recipe.training.reward).name).training
    assert (matcher.task, matcher.dataset) == ("match", "quora")


LI = [
    f"{model}-autoencoder-{corpus}"
    for model in ("standard", "hierarchical", "attention")
    for corpus in ("hotel-reviews", "wikipedia")
]


@pytest.mark.parametrize("name", LI)
def test_settings_of_li_2015(name):
    """Sections 4.1 and 4.2, though one published program has batches of 16, another initial weights up to ±0.1."""
    recipe = load_recipe(FOLDER / name)
    config, training = recipe.make_config(), recipe.training
    assert (config.num_layers, config.hidden_size, config.dropout, config.initializer_range) == (4, 1000, 0.2, 0.08)
    assert config.reverse_source and config.max_length_factor == 1.5
    assert config.vocab_size == (120_005 if name.endswith("wikipedia") else 25_005)
    assert (training.optim, training.learning_rate, training.train_batch_size) == ("sgd", 0.1, 32)
    assert (training.halving_start_epoch, training.halving_interval_epochs) == (5, 0.5)
    assert (training.num_train_epochs, training.max_grad_norm) == (7, 5)
    # The published programs sum losses over words and divide them by documents.
    assert training.loss_normalization == "rows"


TRAYNOR = [name for name in NAMES if "-lm-" in name and not name.endswith("-small")]


@pytest.mark.parametrize("name", TRAYNOR)
def test_settings_of_traynor_2018(name):
    """Section 3.1.2, and in section 4.3 what stays frozen."""
    recipe = load_recipe(FOLDER / name)
    config, training = recipe.make_config(), recipe.training
    assert (config.vocab_size, config.embedding_size, config.max_characters, config.max_words) == (306, 32, 20, 30)
    assert (training.learning_rate, training.lr_scheduler_type, training.max_grad_norm) == (1e-4, "constant", 5)
    assert (training.train_batch_size, training.shuffle_buffer, training.interleaved_documents) == (64, 4096, 128)
    model = make_model(name)
    if training.objective == "autoencode":
        assert config.decode_window is None
        model.requires_grad_(False)
        for part in training.trained_parts:
            model.get_submodule(part).requires_grad_(True)
        learns = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        assert learns == {
            name
            for name, _ in model.named_parameters()
            if name.startswith("model.decoder.") and "word_decoder" not in name
        }


def test_the_three_sizes_of_traynor_2018():
    """Section 4.2.3."""
    wide, deep, wdn = (load_recipe(FOLDER / f"{name}-lm-books").make_config() for name in ("wide", "deep", "wdn"))
    assert (wide.num_layers, wide.value_size, wide.key_size) == (wdn.num_layers, wdn.value_size, wdn.key_size)
    assert (wide.num_layers, wide.value_size, wide.key_size) == (4, 2048, 512)
    assert (deep.num_layers, deep.value_size, deep.key_size) == (10, 1024, 256)
    assert list(wdn.word_encoder_sizes) == [*wide.word_encoder_sizes, 2048, 2048]
    assert list(deep.word_encoder_sizes) == [512] * 8 + [1024]
    assert list(deep.word_decoder_sizes) == [1024] * 2 + [512] * 8
    assert list(wdn.word_decoder_sizes) == [*wide.word_decoder_sizes, 1024, 512, 512, 512]
    assert {config.decode_window for config in (wide, deep, wdn)} == {20}
    assert wdn.sentence_projection and wdn.output_projection and wdn.sentence_noise == 1


@pytest.mark.parametrize(("name", "millions"), [("wide-lm-books", 9.8), ("deep-lm-books", 2.6)])
def test_the_word_encoders_have_the_parameters_that_traynor_2018_counts(name, millions):
    """Section 4.2.4: the wide one has those of three layers, though section 4.2.3 speaks of four."""
    model = make_model(name)
    parts = (model.get_input_embeddings(), model.model.encoder.word_encoder)
    count = sum(parameter.numel() for part in parts for parameter in part.parameters())
    assert count / 1e6 == pytest.approx(millions, rel=0.04)


@pytest.mark.parametrize("name", [name for name in NAMES if "-bpe-" in name])
def test_recipes_of_sub_words_keep_case_beside_those_of_words(name):
    recipe, words = (load_recipe(FOLDER / folder) for folder in (name, name.replace("-bpe", "")))
    assert (recipe.training.tokenizer_model, recipe.training.lowercase) == ("bpe", False)
    assert (words.training.tokenizer_model, words.training.lowercase) == ("word", True)
    assert recipe.training.dataset == words.training.dataset
    assert recipe.generation_config["max_new_tokens"] >= recipe.training.max_target_length
