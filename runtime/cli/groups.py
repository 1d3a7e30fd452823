"""CommandGroup: commands with commands below them, which a wrong name is compared with."""

from __future__ import annotations

from difflib import get_close_matches

import click


class CommandGroup(click.Group):
    """A name that is none of its commands gets the nearest one, or all of them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            close = self.instead_of(name) or get_close_matches(name, names, 1)
            meant = " or ".join(f"'{_called(ctx)} {each}'" for each in close)
            hint = f"did you mean {meant}?" if close else f"there are {', '.join(names)}"
            ctx.fail(f"no such command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def instead_of(self, name: str) -> list[str]:
        """The commands that may be meant by a name that is none; empty: the one that is most like it."""
        return []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities or not any(arg in self.list_commands(ctx) for arg in args):
                raise
            text = f"no such option {error.option_name!r} here: options of a command stand behind its name"
            raise click.NoSuchOption(error.option_name, text, ctx=ctx) from None


def _called(ctx: click.Context) -> str:
    """What a user types for this group; under `python -m` and in tests, too."""
    return f"{_called(ctx.parent)} {ctx.info_name}" if ctx.parent is not None else "understudy"
