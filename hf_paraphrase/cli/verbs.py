"""A verb is a dataclass: its fields are the options of a command and the arguments of the same call in Python."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ..common.errors import InputError
from ..common.fields import Options, default_of
from .terminal import echo

# Every verb by the words of its command.
VERBS: dict[str, type[Verb]] = {}


class VerbCommand(TyperCommand):
    """A command that knows its arguments as they were given, `ctx.obj`, and shows its options by section."""

    sections: ClassVar[Mapping[str, type[Options]]] = {}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        owners = {
            one.name: f"Only for {_article(title)} {title}"
            for title, part in self.sections.items()
            for one in fields(part)
        }
        lines: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            title = "Arguments" if is_argument else owners.get(parameter.name, "Options")
            lines.setdefault(title, []).extend(filter(None, [parameter.get_help_record(ctx)]))
        for title, records in lines.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.obj = list(args)
        return super().parse_args(ctx, args)


@dataclass_transform(kw_only_default=True)
class Verb(Options):
    """Base of all verbs; subclasses are dataclasses. Fields are made by `option`, whose details here may also be:

    - `positional`: an argument of the command instead of an option;
    - `flag`: the option's name where it isn't the field's;
    - `metavar`: the form of its value;
    - `read`: reads what was typed, given the option's name for errors; `many` where the option may be repeated;
    - `rest`: the field gets all options that the command doesn't know.

    The docstring is the command's help: a line for the list of commands, examples to run, then details.
    """

    command_class: ClassVar[type[VerbCommand]] = VerbCommand
    # The mixins whose fields are for one kind of model alone, by the name of that kind.
    sections: ClassVar[Mapping[str, type[Options]]] = {}
    context_settings: ClassVar[Mapping[str, Any]] = {}
    # As it was typed; empty in Python.
    command_line = ""

    def __init_subclass__(cls) -> None:
        dataclass(kw_only=True)(cls)

    def run(self) -> Any:
        """Do it, and return what came out."""
        raise NotImplementedError

    def show(self, result: Any) -> None:
        """Print what `run` returned."""
        if result is not None:
            echo(str(result))

    def refuse_options_of_others(self, kind: str, name: str) -> None:
        """Raise InputError if an option belongs to another section than `name`'s."""
        for owner, part in self.sections.items():
            for one in fields(part):
                if owner != kind and getattr(self, one.name) != default_of(one):
                    raise InputError(f"{_flag(one)} is for a {owner}; {name} is {_article(kind)} {kind}")

    def given(self, *parts: type[Options]) -> dict[str, Any]:
        """The fields of some of its classes that are not None."""
        names = [one.name for part in parts for one in fields(part)]
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def call(self, function: Callable, **more: Any) -> Any:
        """Call a function with the fields that are its arguments and not None, and with `more`."""
        known = inspect.signature(function).parameters
        return function(**{name: value for name, value in self.given(type(self)).items() if name in known} | more)


def verb(words: str) -> Callable[[type[Verb]], type[Verb]]:
    """Make a class the verb of a command, such as "datasets list"."""

    def add(kind: type[Verb]) -> type[Verb]:
        VERBS[words] = kind
        return kind

    return add


class WholeLines(TyperGroup):
    """A group whose help shows the whole first line of each command, at the top level by section."""

    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections = {"Commands": tuple(self.commands)} if ctx.parent else self.sections
        width = max(map(len, self.commands))
        for title, names in sections.items():
            with formatter.section(title):
                lines = {name: self.commands[name].get_short_help_str(1000) for name in names}
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])


def make_app(sections: Mapping[str, tuple[str, ...]], groups: Mapping[str, str], **settings: Any) -> typer.Typer:
    """The command line of all verbs.

    Args:
        sections: The commands and groups of each section of the help, in order.
        groups: What each group of commands is about, by its words.
        settings: Further arguments of `typer.Typer`.
    """
    top = type("Top", (WholeLines,), {"sections": sections})
    made = {"": typer.Typer(cls=top, no_args_is_help=True, **settings)}
    for words, help in groups.items():
        parent, _, name = words.rpartition(" ")
        # With a callback, a group of one command stays a group.
        made[words] = typer.Typer(cls=WholeLines, no_args_is_help=True, help=help, callback=lambda: None)
        made[parent].add_typer(made[words], name=name)
    for words, kind in VERBS.items():
        parent, _, name = words.rpartition(" ")
        command = type(kind.__name__, (kind.command_class,), {"sections": kind.sections})
        made[parent].command(name, cls=command, context_settings=dict(kind.context_settings))(_bind(words, kind))
    return made[""]


def _bind(words: str, kind: type[Verb]) -> Callable:
    """The function from whose signature typer makes the command."""
    options = {one.name: one for one in fields(kind)}
    hints = get_type_hints(kind)

    def command(ctx: typer.Context, **values: Any) -> None:
        sources = {name: ctx.get_parameter_source(name) for name in values}
        given = {name: values[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}
        given |= {name: ctx.args for name, one in options.items() if "rest" in one.metadata}
        for name in given:
            if read := options[name].metadata.get("read"):
                given[name] = read(_label(options[name]), given[name])
        asked = kind(**given)
        asked.command_line = shlex.join(["hf-paraphrase", *words.split(), *ctx.obj])
        asked.show(asked.run())

    parameters = [_parameter(one, hints[name]) for name, one in options.items() if "rest" not in one.metadata]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    command.__signature__ = inspect.Signature([context, *parameters])
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *parameters)}
    command.__doc__ = kind.__doc__
    return command


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def _label(one: Field) -> str:
    return one.metadata["metavar"] if "positional" in one.metadata else _flag(one)


def _flag(one: Field) -> str:
    return one.metadata.get("flag", f"--{one.name.replace('_', '-')}")


def _parameter(one: Field, kind: Any) -> inspect.Parameter:
    """A parameter as typer reads it. Its default is only shown: what isn't given is left to the dataclass."""
    details = one.metadata
    default = default_of(one)
    required = default is MISSING
    if isinstance(default, list | dict):
        default = ",".join(map(str, default)) if "read" in details and "many" not in details else None
        default, kind = default or None, kind | None
    choices = [choice for part in (kind, *get_args(kind)) if get_origin(part) is Literal for choice in get_args(part)]
    if "read" in details or choices:
        kind = list[str] if "many" in details else str
    metavar = f"[{'|'.join(choices)}]" if choices else details.get("metavar")
    shown = {"help": details["help"], "metavar": metavar}
    shown |= {"min": details.get("least"), "max": details.get("most")}
    info = typer.Argument(**shown) if "positional" in details else typer.Option(_flag(one), **shown)
    if default is None and kind in (str, list[str]):
        kind = kind | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind, info],
        default=inspect.Parameter.empty if required else default,
    )
