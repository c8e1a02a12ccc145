"""What can be learnt: the tasks that `training.yaml` names in its field `task`."""

from __future__ import annotations

from .autoencode import AutoencodeTask
from .base import Task
from .paraphrase import ParaphraseTask

__all__ = ["TASKS", "AutoencodeTask", "ParaphraseTask", "Task"]

TASKS: dict[str, type[Task]] = {"autoencode": AutoencodeTask, "paraphrase": ParaphraseTask}
