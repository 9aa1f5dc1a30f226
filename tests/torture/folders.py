"""Run folders and the index are damaged; then every page and address is requested."""

from __future__ import annotations

import random
import shutil
import time

from torture import inputs
from torture.campaign import Campaign, Counts, Failed
from torture.http import KEY, app_with_runs, judge

ADDRESSES = (
    *("/", "/runs", "/runs/one", "/api/runs", "/api/runs/one", "/api/runs/one/frames"),
    *("/api/runs/one/charts", "/api/runs/one/stream", "/api/compare?runs=one,two"),
    *(
        "/api/compare/charts?runs=one,two",
        "/compare?runs=one,two",
        "/api/runs/one/export?format=csv",
    ),
    *("/api/runs/one/export?format=json", "/api/runs/one/export?format=zip", "/healthz"),
)
MUST_ANSWER = ("/runs", "/api/runs", "/healthz", "/")


class Folders(Campaign):
    name = "folders"
    what = "damaged run folders and indexes"
    hangs_after_s = 20.0

    def prepare(self) -> None:
        self.app = app_with_runs(self.folder)
        self.client = self.app.test_client()
        shutil.copytree(self.folder / "runs" / "one", self.folder / "whole")

    def trial(self, rng: random.Random) -> Counts:
        target, data = self.folder / "runs" / "one", self.folder
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder / "whole", target)
        files = [path for path in target.rglob("*") if path.is_file()]
        files += [data / "index.json", *data.glob("index.json.[123]")]
        corpus = [path.read_bytes() for path in files if path.is_file()]  # no link to /dev/zero
        for path in rng.sample(files, rng.randrange(1, 4)):
            match rng.randrange(8):
                case 0:
                    path.unlink(missing_ok=True)
                case 1:
                    path.unlink(missing_ok=True)
                    path.mkdir()
                case 2:
                    path.unlink(missing_ok=True)
                    path.symlink_to("/dev/zero")
                case _:
                    content = path.read_bytes() if path.is_file() else b""
                    path.write_bytes(inputs.changed(rng, content, corpus))
        headers = {"Authorization": f"Bearer {KEY}"}
        for address in ADDRESSES:
            began = time.monotonic()
            answer = self.client.get(address, headers=headers, buffered=False)
            if address.endswith("/stream"):  # the stream of a run without an end has no end either
                next(iter(answer.response))
                answer.close()
            else:
                answer.get_data()
            judge(answer.status_code, began, f"GET {address}")
            if address in MUST_ANSWER and answer.status_code != 200:
                raise Failed(f"GET {address}: {answer.status_code} {answer.text[:200]}")
        for path in data.glob("index.json*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else None
            if "damaged" in path.name:
                path.unlink(missing_ok=True)
        return Counts(len(ADDRESSES))


ALL = (Folders,)
