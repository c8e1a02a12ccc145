from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

__all__ = ["is_left_alone", "start_processes"]

logger = logging.getLogger(__name__)

WORLD_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")


def is_left_alone() -> bool:
    """Whether `accelerate launch --cpu` was asked for several processes, and this is the only one it started.

    On the CPU it sets the port at which they should meet, and leaves starting them to MPI.
    """
    return "MASTER_PORT" in os.environ and not any(name in os.environ for name in WORLD_SIZES)


def start_processes() -> None:
    """Turn a script that `accelerate launch --cpu --num_processes N` started once into N processes.

    Torch's launcher takes this process's place, with the same arguments; in its children, as in every process that is
    not left alone, this does nothing.
    """
    if not is_left_alone():
        return
    number = _read_number_of_processes()
    if number is None:
        logger.warning(
            "this is the only process: `accelerate launch --cpu` starts no others without MPI; for N processes on the "
            "CPU, use `ACCELERATE_USE_CPU=true torchrun --nproc-per-node N`"
        )
        return
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
    os.execv(sys.executable, [sys.executable, *launcher, *sys.argv])


def _read_number_of_processes() -> int | None:
    """What the launcher was asked for, which it tells nobody: its command line, or the configuration file, says it."""
    import psutil
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    arguments = _arguments_of_launcher(psutil.Process(os.getppid()).cmdline())
    if arguments is None:
        return None
    options, _ = launch_command_parser().parse_known_args(arguments)
    return options.num_processes or load_config_from_file(options.config_file).num_processes


def _arguments_of_launcher(command: Sequence[str]) -> list[str] | None:
    """What stands behind `accelerate launch`, `accelerate-launch` or `python -m accelerate.commands.launch`."""
    for position, word in enumerate(command):
        name = os.path.basename(word)
        if name in ("launch", "launch.py", "accelerate-launch", "accelerate.commands.launch"):
            return list(command[position + 1 :])
    return None
