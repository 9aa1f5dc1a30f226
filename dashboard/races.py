"""Races: two to four simulated runs side by side, with one seed and one clock.

A lane of a race is an ordinary run. `lab.run.lanes` keeps the lanes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from dashboard import flips, runs, view
from dashboard.base.errors import Problem
from dashboard.base.requests import Body
from dashboard.comparison import labelled
from dashboard.finished import speed_of
from dashboard.runs import Launcher, StartRequest
from lab.errors import LabError, RequestError
from lab.results.documents import tolerant_document
from lab.results.store import Store
from lab.run import lanes as clock
from lab.scenario import catalogue, code_paths, loading, yaml_text
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario

FEWEST, MOST = 2, 4  # lanes
ALIKE = ("seed", "duration_s", "sample_interval_s", "rate_scale")
Doc = dict[str, Any]  # JSON
Start = tuple[Scenario, Sequence[str]]  # of one lane: what runs, and the arguments of the lab


class Lane(Body):
    """What one lane of a race has that the others need not have."""

    strategy: str | None = Field(None, description="a name from /api/strategies")
    params: dict[str, Any] = Field({}, description="parameters of the strategy")
    cc: str | None = Field(None, description="congestion control")
    set: dict[str, Any] = Field({}, description="keys of the scenario by their paths")


class RaceRequest(Body):
    """The body of POST /api/races: what all lanes have, from `start` or from a run that exists."""

    start: StartRequest | None = Field(None, description="as POST /api/runs takes it")
    run: str | None = Field(None, description="a run; each lane begins with its scenario and seed")
    lanes: tuple[Lane, ...] = Field(min_length=FEWEST, max_length=MOST)


class LaneFlip(flips.FlipRequest):
    """A change of several lanes of one race, which all make at the same simulated time."""

    runs: tuple[str, ...] = Field(min_length=1, max_length=MOST, description="ids of the lanes")


def start(launcher: Launcher, store: Store, request: RaceRequest) -> list[str]:
    """Start a race and return the ids of its runs, in the order of the lanes.

    Raise an error and start nothing if the request is refused or too many runs are in progress.
    """
    if (request.start is None) == (request.run is None):
        raise RequestError("start a race: send either start or run, and not both")
    if request.run is not None:
        made = _beside(store, request.run, request.lanes)
    else:
        assert request.start
        made = _from_form(request.start, request.lanes)
    _refuse_unlike([scenario for scenario, _ in made])
    return launcher.begin_race(made)


def flip(lanes: Sequence[tuple[Path, Doc]], change: LaneFlip) -> list[str]:
    """Send a change to lanes of one race, to be made at the same simulated time. Return the
    numbers of the messages.

    A lane is the folder of a run that goes on, and the JSON object that describes it in lists.
    Raise an error and send nothing if one lane would refuse the change.
    """
    everyone = _race_of([folder for folder, _ in lanes])
    values = []
    for folder, doc in lanes:
        try:
            values.append(flips.check(folder, doc["engine"], change.target, change.value))
        except LookupError as error:
            raise Problem(409, f"change {change.target}: {error}. Try again in a moment") from error
        except RequestError as error:
            raise RequestError(f"lane '{doc['strategy']}': {error}") from error
    with clock.turn(everyone) as is_held:
        if not is_held:
            text = f"change {change.target}: a lane of the race does not answer. Is its process "
            raise Problem(503, text + "suspended? Continue it, or stop the race")
        after_s = clock.reached_s(everyone)
        return [
            flips.send(folder, change.target, value, after_s)
            for (folder, _), value in zip(lanes, values, strict=True)
        ]


def page(store: Store, folders: Sequence[Path]) -> Doc:
    """Return everything that the page of a race shows, as a JSON object."""
    if not FEWEST <= len(folders) <= MOST:
        raise Problem(422, f"race of {len(folders)} runs: choose {FEWEST} to {MOST}")
    _race_of(folders)
    return {"lanes": labelled([view.run(store, each) for each in folders])}


def _race_of(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of all lanes of the race to which some runs belong. Raise a
    `RequestError` if it is not one race."""
    documents = [tolerant_document(each / "manifest.json") for each in folders]
    if late := [each.name for each, has in zip(folders, documents, strict=True) if has is None]:
        text = f"race of {', '.join(late)}: still starting. Load this page again in a moment"
        raise Problem(409, text)
    found = [each.get("lanes") for each in documents if each]
    if not found[0] or any(each != found[0] for each in found):
        names = ", ".join(each.name for each in folders)
        raise RequestError(f"{names}: these runs are not lanes of one race. Compare them instead")
    return [folders[0].parent / name for name in found[0]]


def _from_form(request: StartRequest, lanes: Sequence[Lane]) -> list[Start]:
    """Return the scenarios and arguments of lanes that have `request` in common."""
    _refuse_real_time(request.engine)
    wanted = [_with(request, lane) for lane in lanes]
    return [(runs.checked(each), runs.arguments(each)) for each in wanted]


def _with(request: StartRequest, lane: Lane) -> StartRequest:
    chosen = lane.model_dump(exclude_unset=True)
    if lane.strategy not in (None, request.strategy):
        chosen = {"params": {}} | chosen
    chosen["set"] = request.set | lane.set
    return request.model_copy(update=chosen)


def _beside(store: Store, run_id: str, lanes: Sequence[Lane]) -> list[Start]:
    """Return the scenarios and arguments of lanes that begin as the run `run_id` did."""
    store.refresh()
    try:
        folder = store.folder(run_id)
        raw = yaml_text.read(folder / "scenario.yaml")
    except LabError as error:
        raise Problem(404, f"race against run '{run_id}': {error}") from error
    doing = f"race against run '{run_id}'"
    code_paths.refuse_code_paths(raw, doing)
    engine = store.get(run_id)["engine"]
    _refuse_real_time(engine)
    made: list[Start] = []
    for lane in lanes:
        code_paths.refuse_code_paths(lane.model_dump(), doing)
        request = StartRequest(scenario=str(folder), **lane.model_dump(), engine=engine)
        argv = runs.arguments(request) + speed_of(folder)
        overrides = Overrides(strategy=lane.strategy, cc=lane.cc, settings=runs.settings(request))
        made.append((loading.load(str(folder), overrides), argv))
    return made


def _refuse_real_time(engine: str) -> None:
    if any(row["name"] == engine and row["real_time"] for row in catalogue.engine_rows()):
        raise RequestError(
            f"start a race on engine '{engine}': emulations share the machine, so only one runs at "
            "a time. Race in the simulator, or show an earlier run as a ghost in the first chart"
        )


def _refuse_unlike(scenarios: Sequence[Scenario]) -> None:
    first, *others = scenarios
    for key in ALIKE:
        if any(getattr(each, key) != getattr(first, key) for each in others):
            raise RequestError(f"start a race: {key} differs between lanes. It must be the same")
    digests = [loading.experiment(each, "sim") for each in scenarios]
    if len(set(digests)) < len(digests):
        raise RequestError("start a race: two lanes are the same. Change a strategy or a setting")
