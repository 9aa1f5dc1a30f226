"""A decorator for handlers of the API. It also collects the data for /openapi.json."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from flask import Blueprint, Response, jsonify
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

Handler = Callable[..., Any]
ERRORS = {
    "400": "the request cannot be read",
    "403": "this browser or program has no key, or a page of another site asks",
    "404": "there is no such run",
    "409": "not possible now, or not on this machine",
    "422": "a value is wrong: nothing was started or changed",
    "429": "too many runs are running",
    "503": "too many browsers follow runs, or the machine lacks memory, descriptors or disk; "
    "Retry-After says when to try again",
}
SCHEMA = "#/components/schemas/{model}"


class Error(BaseModel):
    error: str


@dataclass(frozen=True)
class Row:
    """One address of the API, for /openapi.json.

    `body` is the model of the JSON request body. `status` is the HTTP status if the request
    succeeds.
    """

    method: str
    path: str
    summary: str
    body: type[BaseModel] | None
    status: int


TABLE: list[Row] = []


def router(blueprint: Blueprint) -> Callable[..., Callable[[Handler], Handler]]:
    """Return a decorator that makes a function the handler of an API address, and adds the address
    to `TABLE`.

    The value that the function returns is sent as JSON.
    """

    def route(
        method: str, path: str, summary: str, body: type[BaseModel] | None = None, status: int = 200
    ) -> Callable[[Handler], Handler]:
        TABLE.append(Row(method, path, summary, body, status))

        def register(handler: Handler) -> Handler:
            def answer(**path_values: str) -> Any:
                found = handler(**path_values)
                if isinstance(found, Response):
                    return found
                return (jsonify(found) if status != 204 else "", status)

            rule = re.sub(r"{(\w+)}", r"<\1>", path)
            blueprint.add_url_rule(
                rule, f"{handler.__name__}_{method.lower()}", answer, methods=[method]
            )
            return handler

        return register

    return route


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI description of all addresses in `TABLE`. `version` is the version of the
    lab."""
    paths: dict[str, Any] = {}
    schemas = _schemas([Error, *(row.body for row in TABLE if row.body)])
    for row in TABLE:
        operation: dict[str, Any] = {"summary": row.summary, "responses": _responses(row)}
        names = re.findall(r"{(\w+)}", row.path) + re.findall(r"\?(\w+)=", row.summary)
        operation["parameters"] = [_parameter(name, row) for name in names]
        if row.body:
            content = {"schema": {"$ref": SCHEMA.format(model=row.body.__name__)}}
            operation["requestBody"] = {"required": True, "content": {"application/json": content}}
        paths.setdefault(row.path, {})[row.method.lower()] = operation
    info = {"title": "MPTCP SDN Lab", "version": version}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _schemas(models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return the JSON schemas of `models` and of all models inside them, by name."""
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [(each, "validation") for each in models]
    return cast(dict[str, Any], models_json_schema(asked, ref_template=SCHEMA)[1]["$defs"])


def _parameter(name: str, row: Row) -> dict[str, Any]:
    in_path = f"{{{name}}}" in row.path
    return {
        "name": name,
        "in": "path" if in_path else "query",
        "required": in_path,
        "schema": {"type": "string"},
    }


def _responses(row: Row) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": SCHEMA.format(model="Error")}}}
    good = {str(row.status): {"description": row.summary}}
    codes = ERRORS if row.method != "GET" else {code: ERRORS[code] for code in ("404", "422")}
    codes = codes if "stream" not in row.path else codes | {"503": ERRORS["503"]}
    return good | {code: {"description": text, "content": error} for code, text in codes.items()}
