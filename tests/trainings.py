"""fairseq's commands in the tests' own process."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from fairseq import checkpoint_utils, options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf


def config_of(command: list[object]) -> Any:
    """Return the config of a `fairseq-train` command."""
    words = [str(word) for word in command[1:]]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))


def forget_best() -> None:
    """Take back the best score, which fairseq keeps on its function."""
    if hasattr(checkpoint_utils.save_checkpoint, "best"):
        del checkpoint_utils.save_checkpoint.best


@contextmanager
def process_of_its_own() -> Iterator[None]:
    """Give back what commands change of a process."""
    state, threads, logs = torch.get_rng_state(), torch.get_num_threads(), list(logging.root.handlers)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_rng_state(state)
        torch.set_num_threads(threads)
        logging.root.handlers[:] = logs
        for number, handler in handlers.items():
            signal.signal(number, handler)
        forget_best()
