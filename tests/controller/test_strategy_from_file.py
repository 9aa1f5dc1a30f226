"""A strategy from a user's Python file; errors in it name file and line."""

from __future__ import annotations

import textwrap

import pytest

from controller import decision_log as lines
from controller import strategies
from controller.control import Control
from controller.errors import ControllerError, StrategyFailed, UnknownStrategy, UserFileRefused
from controller.observation import Observation
from controller.strategies import from_file

MINE = """\
    from controller.command import Decision
    from controller.strategies.base import Strategy, StrategyParams, param

    class Params(StrategyParams):
        share_mbps: float = param(2, "Mb/s", "How much", gt=0)

    class Mine(Strategy):
        Params = Params

        def decide(self, observation):
            return [Decision("wifi1", f"{self.params.rate_bps('share_mbps')} bit/s")]

        def withdraw(self, observation):
            return []
    """
EMPTY = Observation(now_ns=0)


@pytest.fixture(autouse=True)
def table(monkeypatch):
    monkeypatch.setattr(strategies, "STRATEGIES", strategies.STRATEGIES.copy())
    monkeypatch.setattr(from_file, "STRATEGIES", strategies.STRATEGIES)


@pytest.fixture
def file(tmp_path):
    def write(text=MINE, name="mine.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def refusal(path):
    with pytest.raises(UserFileRefused) as error:
        from_file.register(path)
    return str(error.value)


def body(decide, withdraw="return []"):
    """A file with `decide` in line 4 and its body in line 5."""
    return f"""\
        from controller.strategies.base import Strategy

        class Mine(Strategy):
            def decide(self, observation):
                {decide}
            def withdraw(self, observation):
                {withdraw}
        """


def test_a_strategy_is_named_like_its_file_and_decides(file):
    assert from_file.register(file()) == "mine"
    step = Control("mine", {"share_mbps": 4}, rate_scale=0.5).step(EMPTY)
    assert (step.strategy, step.decisions[0].reason) == ("mine", "2000000 bit/s")


def test_a_file_that_was_changed_is_loaded_anew(file):
    from_file.register(file())
    from_file.register(file(MINE.replace("bit/s", "b/s")))
    assert Control("mine").step(EMPTY).decisions[0].reason == "2000000 b/s"


def test_nothing_is_written_beside_the_file(file, tmp_path):
    from_file.register(file())
    assert [each.name for each in tmp_path.iterdir()] == ["mine.py"]


def test_the_name_of_a_built_in_strategy_is_refused(file):
    path = file(name="meter_throttling.py")
    assert refusal(path) == f"import {path}: a built-in strategy has this name, rename the file"


def test_two_files_with_one_name_are_refused(file, tmp_path):
    first = file()
    from_file.register(first)
    (tmp_path / "other").mkdir()
    assert f"{first} has this name too" in refusal(file(name="other/mine.py"))


def test_a_name_that_differs_from_the_files_is_refused(file):
    path = file(
        'from controller.strategies.none import NoStrategy\nclass A(NoStrategy):\n    name = "a"'
    )
    assert refusal(path) == (
        f"import {path}, line 2: the strategy has the name of its file: write name = 'mine'"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "import nothing_like_it",
            "line 1: ModuleNotFoundError: No module named 'nothing_like_it'",
        ),
        ("x = 1\ny = (", "line 2: SyntaxError: '(' was never closed"),
        ("x = 1\n\nx / 0", "line 3: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "line 1: SystemExit: 3"),
        ("x = 1", "line 1: it defines no class derived from Strategy"),
        (
            "from controller.strategies.base import Strategy\n\nclass Half(Strategy):\n"
            "    def decide(self, observation):\n        return []",
            "line 3: class Half has no method withdraw",
        ),
        (
            "from controller.strategies.none import NoStrategy\nclass A(NoStrategy): pass\n"
            "class B(NoStrategy): pass",
            "line 3: one strategy is needed in a file, here are A and B",
        ),
    ],
)
def test_an_error_in_a_file_is_reported_with_file_and_line(file, text, says):
    path = file(text)
    assert refusal(path) == f"import {path}, {says}"
    with pytest.raises(UnknownStrategy):
        Control("mine")


def test_a_file_that_is_missing_is_refused(tmp_path):
    assert "FileNotFoundError" in refusal(str(tmp_path / "nowhere.py"))


@pytest.mark.parametrize(
    ("decide", "line", "says"),
    [
        ("return {}['x']", 5, "KeyError: 'x'"),
        ("return int('x')", 5, "ValueError: invalid literal for int() with base 10: 'x'"),
        ("return None", 4, "TypeError: 'NoneType' object is not iterable"),
        ("return ['meter']", 4, "TypeError: it returned 'meter', which is no Decision"),
    ],
)
def test_an_exception_in_decide_names_file_and_line(file, decide, line, says):
    path = file(body(decide))
    control = Control(from_file.register(path))
    with pytest.raises(StrategyFailed) as failure:
        control.step(EMPTY)
    assert (failure.value.file, failure.value.line) == (path, line)
    assert str(failure.value) == f"strategy 'mine' failed in decide: {path}, line {line}: {says}"
    assert isinstance(failure.value, ControllerError)
    assert lines.failure_line("mine", failure.value) == {
        "kind": "failed",
        "strategy": "mine",
        "file": path,
        "line": line,
        "text": str(failure.value),
    }


def test_an_exception_in_withdraw_names_file_and_line(file):
    path = file(body("return []", "return observation.nothing"))
    control = Control(from_file.register(path))
    control.step(EMPTY)
    control.switch("none")
    with pytest.raises(StrategyFailed, match=r"failed in withdraw: .*mine.py, line 7: Attribute"):
        control.step(EMPTY)


def test_an_exception_when_it_starts_names_file_and_line(file):
    text = textwrap.dedent(body("return []")) + "    def __init__(self, params):\n        boom\n"
    from_file.register(file(text))
    with pytest.raises(StrategyFailed, match=r"failed in __init__: .*mine.py, line 9: NameError"):
        Control("mine")


def test_an_exception_in_a_built_in_strategy_is_a_failure_too(monkeypatch):
    monkeypatch.setattr(
        strategies.STRATEGIES["none"], "decide", lambda self, observation: 1 / 0, raising=True
    )
    with pytest.raises(StrategyFailed, match="strategy 'none' failed in decide"):
        Control("none").step(EMPTY)


@pytest.mark.parametrize("method", ["decide", "withdraw"])
def test_an_error_of_the_controller_itself_is_passed_on(file, method):
    raising = "from controller.errors import ControllerError; raise ControllerError('no')"
    path = file(body(**{"decide": "return []", method: raising}))
    control = Control(from_file.register(path))
    if method == "withdraw":
        control.step(EMPTY)
        control.switch("none")
    with pytest.raises(ControllerError, match="no") as error:
        control.step(EMPTY)
    assert type(error.value) is ControllerError
