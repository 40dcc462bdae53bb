"""The command behind scripts/bench."""

from __future__ import annotations

import argparse
import sys

from benchmarks import envs, jobs, machine, report

INSTALL = "pip install -e . (or set PYTHON to an interpreter that has it)"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; a missed target is a result, not a failure of the command."""
    chosen = _parser().parse_args(arguments)
    if chosen.command == "setup":
        return _setup(chosen.peers)
    if chosen.command == "job":
        jobs.serve(chosen.area, chosen.name, chosen.quick, chosen.folder)
        return 0
    return _area(chosen)


def _setup(peers: list[str]) -> int:
    """The peers' environments first: they need nothing of clew."""
    failed = envs.setup(peers)
    for area in jobs.AREAS:
        try:
            jobs.area_of(area).prepare()
        except ModuleNotFoundError as error:
            print(f"{error}; no stores were made. Remedy: {INSTALL}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def _area(chosen: argparse.Namespace) -> int:
    name = chosen.command
    try:
        area = jobs.area_of(name)
    except ModuleNotFoundError as error:
        print(f"{error}; remedy: {INSTALL}", file=sys.stderr)
        return 2
    known = [job.name for job in area.JOBS]
    if unknown := set(chosen.only) - set(known):
        print(f"no job {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    with area.running():
        facts = machine.header(name, chosen.quick, area.facts(chosen.quick))
        outcomes = jobs.run_area(name, chosen.quick, chosen.only)
    if chosen.json:
        print(report.as_json(outcomes))
    elif chosen.markdown:
        print(report.as_markdown(facts, outcomes, name), end="")
    else:
        print(report.as_text(facts, outcomes))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    setup = commands.add_parser(
        "setup", help="make the peers' environments and the stores of --quick (may be repeated)"
    )
    setup.add_argument("peers", nargs="*", help=f"some of: {', '.join(envs.PEERS)}")
    for area in jobs.AREAS:
        command = commands.add_parser(area, help=f"measure the {area}")
        command.add_argument("--quick", action="store_true", help="end within 50 s")
        shape = command.add_mutually_exclusive_group()
        shape.add_argument("--json", action="store_true", help="one object on standard output")
        shape.add_argument("--markdown", action="store_true", help="the text of RESULTS.md")
        command.add_argument("--only", action="append", default=[], metavar="JOB", help="a job")
    job = commands.add_parser("job")
    job.add_argument("area", choices=jobs.AREAS)
    job.add_argument("name")
    job.add_argument("folder")
    job.add_argument("--quick", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
