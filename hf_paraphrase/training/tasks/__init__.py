"""What can be learnt: the tasks that `training.yaml` names in its field `task`."""

from __future__ import annotations

from .base import Task
from .paraphrase import ParaphraseTask

__all__ = ["TASKS", "ParaphraseTask", "Task"]

TASKS: dict[str, type[Task]] = {"paraphrase": ParaphraseTask}
