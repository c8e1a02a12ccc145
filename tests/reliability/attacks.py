"""All attacks, by the option that says how many."""

from __future__ import annotations

from collections.abc import Callable

from .calls import call_from_threads, call_hostile
from .checkpoints import open_hostile_checkpoints
from .connections import attack_connections
from .corpora import fuzz_corpora
from .damages import open_damaged_checkpoints
from .disk import fill_disk
from .kills import kill_pairs, kill_single
from .others import run_twice_in_one_folder
from .panics import panic_in_workers
from .pushes import push_through_faults
from .stages import kill_at_stages
from .trials import Trials

ATTACKS: dict[str, Callable[[int, int], Trials]] = {
    "files": fuzz_corpora,
    "calls": call_hostile,
    "threads": call_from_threads,
    "kills": kill_single,
    "pair-kills": kill_pairs,
    "stages": kill_at_stages,
    "pushes": push_through_faults,
    "disks": fill_disk,
    "checkpoints": open_hostile_checkpoints,
    "damages": open_damaged_checkpoints,
    "panics": panic_in_workers,
    "connections": attack_connections,
    "locks": run_twice_in_one_folder,
}
