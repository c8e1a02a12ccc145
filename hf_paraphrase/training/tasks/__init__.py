"""What can be learnt: the tasks that `training.yaml` names in its field `task`."""

from __future__ import annotations

from .answer import AnswerTask
from .base import Task, TaskData
from .decompose import AdaptTask, DecomposeTask
from .edit import EditTask
from .language_model import LanguageModelTask
from .match import MatchTask
from .paraphrase import ParaphraseTask
from .rewrite import AutoencodeTask, DenoiseTask

__all__ = ["TASKS", "Task", "TaskData"]

TASKS: dict[str, type[Task]] = {
    "adapt": AdaptTask,
    "answer": AnswerTask,
    "autoencode": AutoencodeTask,
    "decompose": DecomposeTask,
    "denoise": DenoiseTask,
    "edit": EditTask,
    "language_model": LanguageModelTask,
    "match": MatchTask,
    "paraphrase": ParaphraseTask,
}
