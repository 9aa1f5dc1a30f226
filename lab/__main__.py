"""The entry point of `python -m lab`."""

from lab.isolation import isolate

if __name__ == "__main__":
    isolate()
    from lab.cli.commands import cli

    cli(prog_name="lab")
