from __future__ import annotations

import pytest

from .opt_outs import OptOuts


class Poor(OptOuts):
    opt_outs = {"gradient_checkpointing": "there is no layer to run again"}


def refuse() -> None:
    raise ValueError("Poor does not support activation checkpointing")


def test_what_is_lacking_must_be_said():
    with pytest.raises(ValueError), OptOuts().supports("gradient_checkpointing"):
        refuse()


def test_what_is_said_to_be_lacking_is_shown_to_be():
    with Poor().supports("gradient_checkpointing"):
        refuse()


def test_an_opt_out_that_nothing_needs_fails():
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"), Poor().supports("gradient_checkpointing"):
        pass


def test_another_error_than_that_of_the_lack_is_one():
    with pytest.raises(AssertionError, match="Regex"), Poor().supports("gradient_checkpointing"):
        raise ValueError("something else")
    with pytest.raises(TypeError), Poor().supports("gradient_checkpointing"):
        raise TypeError


@pytest.mark.parametrize("opt_outs", [{"checkpointing": "a name that no check has"}, {"export": "no"}])
def test_an_opt_out_has_a_known_name_and_a_reason(opt_outs):
    poor = Poor()
    poor.opt_outs = opt_outs
    with pytest.raises(AssertionError):
        poor.test_opt_outs_are_known_and_have_reasons()
