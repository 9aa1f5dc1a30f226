"""The worksheets that come with the lab are proved by their own attempts."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from lab.__main__ import cli
from lab.worksheets import loading


@pytest.mark.parametrize("name", loading.names())
def test_each_shipped_worksheet_is_proved_by_its_attempts(name, tmp_path):
    """The run of the instructor in real_kernel is simulated here, too."""
    argv = ["worksheet", "try", name, "--engine", "sim", "--runs", str(tmp_path)]
    done = CliRunner().invoke(cli, argv)
    assert done.exit_code == 0, done.output
