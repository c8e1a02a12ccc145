"""What can be learnt: the tasks that `training.yaml` names in its field `task`."""

from __future__ import annotations

from .base import Task
from .edit import EditTask
from .paraphrase import ParaphraseTask

__all__ = ["TASKS", "EditTask", "ParaphraseTask", "Task"]

TASKS: dict[str, type[Task]] = {"edit": EditTask, "paraphrase": ParaphraseTask}
