"""What can be learnt: the tasks that `training.yaml` names in its field `task`."""

from __future__ import annotations

from .base import Task
from .edit import EditTask
from .match import MatchTask
from .paraphrase import ParaphraseTask

__all__ = ["TASKS", "EditTask", "MatchTask", "ParaphraseTask", "Task"]

TASKS: dict[str, type[Task]] = {"edit": EditTask, "match": MatchTask, "paraphrase": ParaphraseTask}
