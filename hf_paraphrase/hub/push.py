"""Uploading a checkpoint: one atomic commit, retried until it succeeds."""

from __future__ import annotations

import inspect
import logging
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, cast

from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    ModelCardData,
    ModelInfo,
    RepoUrl,
    constants,
    get_token,
)
from huggingface_hub.community import Discussion
from huggingface_hub.errors import HFValidationError, RevisionNotFoundError
from huggingface_hub.utils import validate_repo_id

from ..common.docstrings import read_docstring
from ..common.errors import InputError
from ..common.hub_access import failing_for_good, reach_hub, retry
from ..metrics import load_metric
from ..models.bundle import bundle
from ..models.search.dips import dips
from ..models.search.diverse_beam_search import diverse_beam_search
from ..released import find_checkpoint
from .card import is_edited, make_card, seal
from .checkpoint import read_checkpoint
from .files import REQUIREMENTS, find_files, find_handler, is_ours, read_template
from .metric_space import make_metric_space
from .results import EVAL_RESULTS_FILE, make_eval_results_yaml

logger = logging.getLogger(__name__)

CARD_FILE = "README.md"
PULL_REQUEST = re.compile(r"refs/pr/\d+")
# Decodings that `generate(custom_generate=…)` loads for anybody's model.
FOLDER = "custom_generate/"
SHARED: dict[str, Callable] = {"diverse_beam": diverse_beam_search, "dips": dips}
PAPERS = {
    "diverse_beam": "Vijayakumar et al. 2016, *Diverse Beam Search: Decoding Diverse Solutions from Neural Sequence "
    "Models*, https://arxiv.org/abs/1610.02424",
    "dips": "Kumar et al. 2019, *Submodular Optimization-based Diverse Paraphrasing and its Effectiveness in Data "
    "Augmentation*, https://aclanthology.org/N19-1363",
}
GENERATE = read_template("generate.txt")
CARD = read_template("decoding_card.md")


def check_access(repo_id: str) -> None:
    """Refuse what can be told to fail without asking the Hub: InputError without a token or for an invalid name."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"{repo_id!r} is not a valid repository name: {error}") from error
    if get_token() is None:
        raise InputError("no Hub token found: run `hf auth login`, or set HF_TOKEN")
    if constants.HF_HUB_OFFLINE:
        raise InputError("HF_HUB_OFFLINE is set, which forbids to ask the Hub; unset it to push")


def push_to_hub(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    create_pr: bool = False,
    replace_card: bool = False,
    dataset_id: str | None = None,
    license: str | None = None,
    language: str | None = None,
    with_handler: bool = False,
) -> str:
    """Upload a checkpoint with its code, recipe, results and card, as one commit.

    What fails for want of a connection or of patience on the Hub's side is tried again, with growing waits. A push
    that failed for good has changed neither the folder nor the repository's content; the same call finishes it, and
    sends nothing again that is there already.

    The token is the one of the environment or of the Hub's own login.

    Args:
        folder: The checkpoint, such as the output folder of a training, or the released model's name; nothing in it
            is changed.
        repo_id: The repository, created if missing; without a namespace, in the user's.
        private: Make a new repository private.
        revision: Branch, created if missing; or an open pull request, such as `refs/pr/1`.
        create_pr: Open a pull request; one that an earlier push opened, and that is still open, gets the commit.
        replace_card: Replace the card even if a person has edited it.
        dataset_id: Repository of the corpus on the Hub, for the card.
        license: Licence of the weights, for the card; by default the training corpus's.
        language: Code of the text's language, for the card; by default `en` for a published corpus.
        with_handler: Add `handler.py`, by which Inference Endpoints serve the model, and what that needs.

    Returns:
        The address of the commit or pull request.

    Raises:
        InputError: No whole checkpoint, no token, or no such pull request.
        FileNotFoundError: There is no such folder.
        PushError: The Hub refused, or could not be reached.
    """
    check_access(repo_id)
    _check_revision(revision, create_pr)
    folder = Path(find_checkpoint(folder))
    files: dict[str, Path | bytes] = {**find_files(folder)}
    checkpoint = read_checkpoint(folder)
    if with_handler:
        files |= find_handler(files, writes=checkpoint.auto_class == "AutoModelForSeq2SeqLM")
    own_card = folder / CARD_FILE
    if not own_card.is_file():  # what has no card fails before a repository is made for it
        make_card(checkpoint, repo_id, dataset_id, license, language)
    api, repo = create_repository(repo_id, private)
    repo_id = repo.repo_id
    if entries := make_eval_results_yaml(checkpoint, dataset_id):
        files[EVAL_RESULTS_FILE] = entries.encode()
    if own_card.is_file():
        files[CARD_FILE] = own_card
    else:
        files[CARD_FILE] = str(make_card(checkpoint, repo_id, dataset_id, license, language)).encode()
    title = f"Upload {folder.resolve().name}"
    return retry(lambda: _commit(api, repo_id, files, title, is_ours, revision, create_pr, replace_card))


def push_decoding(name: str, repo_id: str, *, private: bool = False) -> str:
    """Upload a decoding as one that `generate(custom_generate=repo_id, trust_remote_code=True)` takes, as one commit.

    Args:
        name: "diverse_beam" or "dips".
        repo_id: As in `push_to_hub`, and not a model's.
        private: Likewise.

    Returns:
        The address of the commit.

    Raises:
        InputError: Unknown decoding, no token, or a repository with a model.
        PushError: The Hub refused, or could not be reached.
    """
    if name not in SHARED:
        raise InputError(f"a decoding to share is one of {', '.join(SHARED)}, not {name}")
    api, repo = create_repository(repo_id, private)
    repo_id = repo.repo_id
    if retry(lambda: api.file_exists(repo_id, "config.json")):
        raise InputError(f"{repo_id} holds a model: push the decoding to a repository of its own")
    files = {**make_decoding(name), CARD_FILE: seal(make_decoding_card(name, repo_id)).encode()}
    return retry(lambda: _commit(api, repo_id, files, f"Upload {name}", lambda path: path.startswith(FOLDER)))


def make_decoding(name: str) -> dict[str, bytes]:
    """The files of a decoding's repository, "diverse_beam" or "dips", but for its card, by their paths."""
    function = SHARED[name]
    files = bundle(f"search.{function.__module__.rpartition('.')[2]}")
    files |= {"generate.py": GENERATE.format(function=function.__name__), "requirements.txt": REQUIREMENTS}
    return {FOLDER + path: text.encode() for path, text in files.items()}


def make_decoding_card(name: str, repo_id: str) -> str:
    """The card of a decoding's repository, described by the function's docstring."""
    function = SHARED[name]
    docstring = read_docstring(function)
    described = docstring.arguments
    rows = [
        f"| `{one.name}` | `{one.default}` | {described[one.name]} |"
        for one in inspect.signature(function).parameters.values()
        if one.default is not one.empty
    ]
    tags = ["custom_generate", "paraphrase", "hf_paraphrase", name]
    metadata = ModelCardData(library_name="transformers", license="apache-2.0", tags=tags)
    return CARD.format(
        metadata=metadata.to_yaml(),
        title=repo_id.rpartition("/")[2],
        summary=docstring.summary.partition(": `generate(")[0] + ".",
        repo_id=repo_id,
        arguments="\n".join(rows),
        details=docstring.details,
        function=function.__name__,
        paper=PAPERS[name],
    )


def push_metric(name: str, repo_id: str, *, private: bool = False) -> str:
    """Upload a metric, one of `list_metrics()`, as a Space that `evaluate.load(repo_id)` loads from, as one commit.

    The module gets the name of the Space. Other arguments and errors are those of `push_decoding`, and InputError says
    that a name is none that `evaluate` can load.

    Returns:
        The address of the Space.
    """
    metric = load_metric(name, keep_in_memory=True)
    module = repo_id.rpartition("/")[2]
    if "." in module:
        raise InputError(f"evaluate.load cannot load from {repo_id}: choose a name without a dot, not {module!r}")
    api, repo = create_repository(repo_id, private, "space")
    files = make_metric_space(metric, repo.repo_id)

    def upload() -> None:  # operations remember what was done with them: each attempt needs new ones
        additions = [CommitOperationAdd(path, text.encode()) for path, text in files.items()]
        api.create_commit(repo.repo_id, additions, commit_message=f"Upload {name}", repo_type="space")

    retry(upload)
    return str(repo)


def push_folder(folder: str | Path, repo_id: str, kind: Literal["dataset", "space"], *, private: bool = False) -> str:
    """Upload a dataset's card and Parquet files, or a Gradio Space, as one commit; errors as in `push_to_hub`.

    Other files in a Space stay; of the model in it, old files go.

    Args:
        folder: What is uploaded.
        repo_id: As in `push_to_hub`.
        kind: What it is.
        private: Likewise.

    Returns:
        The address of the commit, or of the Space.
    """
    api, repo = create_repository(repo_id, private, kind)
    patterns = {"allow_patterns": ["README.md", "data/*.parquet"]} if kind == "dataset" else {}
    patterns |= {"delete_patterns": ["model/*"]} if kind == "space" else {}
    upload = partial(api.upload_folder, repo_id=repo.repo_id, folder_path=folder, repo_type=kind, **patterns)
    commit = retry(upload)
    return commit.commit_url if kind == "dataset" else str(repo)


def _check_revision(revision: str | None, create_pr: bool) -> None:
    """Refuse references that cannot be committed to."""
    if revision is not None and revision.startswith("refs/"):
        if not PULL_REQUEST.fullmatch(revision):
            raise InputError(f"--revision {revision}: name a branch without refs/, or a pull request as refs/pr/1")
        if create_pr:
            raise InputError(f"--revision {revision} is a pull request already: leave out --create-pr")


def create_repository(repo_id: str, private: bool = False, kind: str = "model") -> tuple[HfApi, RepoUrl]:
    """Create a repository if missing, private if requested or the user's default; errors as in `push_to_hub`."""
    check_access(repo_id)
    api = HfApi(library_name="hf_paraphrase")
    sdk = "gradio" if kind == "space" else None

    def create() -> RepoUrl:
        reach_hub()  # the client itself would wait for an answer without end
        return api.create_repo(repo_id, private=private or None, repo_type=kind, space_sdk=sdk, exist_ok=True)

    return api, retry(create)


def _commit(
    api: HfApi,
    repo_id: str,
    files: Mapping[str, Path | bytes],
    title: str,
    is_replaced: Callable[[str], bool],
    revision: str | None = None,
    create_pr: bool = False,
    replace_card: bool = False,
) -> str:
    """Try once. The state of the repository is fetched again, since an earlier attempt may have got further."""
    review = _find_review(api, repo_id, title) if create_pr else None
    if review is not None:
        revision = review.git_reference
    elif revision is not None and not create_pr and not PULL_REQUEST.fullmatch(revision):
        api.create_branch(repo_id, branch=revision, exist_ok=True)
    try:
        state = api.repo_info(repo_id, revision=revision)
    except RevisionNotFoundError as error:
        raise InputError(f"{repo_id} has no {revision}; --create-pr alone opens a new pull request") from error
    there = {file.rfilename for file in cast(ModelInfo, state).siblings or ()}
    if not replace_card and CARD_FILE in there:
        # Of a branch the client would hand out an older card, which it kept, where the Hub is slow to answer.
        card = Path(api.hf_hub_download(repo_id, CARD_FILE, revision=state.sha))
        if is_edited(card.read_text(encoding="utf-8", errors="replace")):
            logger.warning("%s has a card that a person edited: it is kept; --replace-card replaces it", repo_id)
            files = {path: content for path, content in files.items() if path != CARD_FILE}
    stale = sorted(path for path in there - files.keys() if is_replaced(path))
    # Operations remember what was done with them: each attempt needs new ones.
    additions = [CommitOperationAdd(path, content) for path, content in sorted(files.items())]
    is_new_review = create_pr and review is None
    with failing_for_good():  # the client has retried by itself
        api.preupload_lfs_files(repo_id, additions, revision=revision, create_pr=is_new_review)
    with warnings.catch_warnings():
        # A retriever's pairs are meant to be in a model's repository.
        warnings.filterwarnings("ignore", message="It seems that you are about to commit a data file")
        commit = api.create_commit(
            repo_id,
            [*additions, *(CommitOperationDelete(path, is_folder=False) for path in stale)],
            commit_message=title,
            revision=revision,
            # Whoever commits meanwhile, a card for instance, makes this attempt fail and the next one look again.
            parent_commit=state.sha,
            create_pr=is_new_review,
        )
    return review.url if review else commit.pr_url or commit.commit_url


def _find_review(api: HfApi, repo_id: str, title: str) -> Discussion | None:
    """The open pull request of an earlier push of this user's, which may have been cut off after it was opened."""
    user = api.whoami()["name"]
    found = api.get_repo_discussions(repo_id, author=user, discussion_type="pull_request", discussion_status="open")
    return next((one for one in found if one.title == title), None)
