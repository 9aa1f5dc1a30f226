"""Teach numba the records of the core (`core.state`): in compiled code, a reference to a record is
the address of its row (`memory`), and a list is the address of its first entry.

Only `compiled.speed_up` imports this module, because it imports numba.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import OpaqueModel
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import (
    NativeValue,
    box,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    register_model,
    typeof_impl,
    unbox,
)

from lab.engines.sim.core.jit import RECORDS
from lab.engines.sim.memory import ROWS, WORD, Row, Table

INT64 = ir.IntType(64)


class Reference(types.Type):
    """The numba type of a reference to a record."""

    def __init__(self, record: str) -> None:
        self.record = record
        super().__init__(f"Reference({record})")


class List(types.Type):
    """The numba type of a list of records or of integers; `item` is "int" or the record's name."""

    def __init__(self, item: str) -> None:
        self.item = item
        super().__init__(f"List({item})")


register_model(Reference)(OpaqueModel)
register_model(List)(OpaqueModel)


def numba_type(kind: str) -> types.Type:
    """Return the numba type of a field, from its annotation in `core.state`."""
    if kind in ("int", "float"):
        return types.int64 if kind == "int" else types.float64
    return List(kind[5:-1]) if kind.startswith("list[") else Reference(kind)


def _words(item: str) -> int:
    return len(RECORDS[item].__annotations__) if item in RECORDS else 1


@typeof_impl.register(Row)
def _type_of_row(row: Any, _context: Any) -> types.Type:
    return Reference(row.record)


@typeof_impl.register(Table)
def _type_of_table(table: Any, _context: Any) -> types.Type:
    return List(table.kind.record)


@unbox(List)
@unbox(Reference)
def _unbox(kind: Any, row: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(row, "address")
    number = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(number, c.context.get_value_type(kind)))


class Viewer:
    """Makes the `Row` object of a record that compiled code returns."""

    def __init__(self, record: str) -> None:
        self.record = record

    def __call__(self, address: int) -> Row:
        return ROWS[self.record].from_address(address)


@box(Reference)
def _box(kind: Any, pointer: Any, c: Any) -> Any:
    viewer = c.pyapi.unserialize(c.pyapi.serialize_object(Viewer(kind.record)))
    number = c.pyapi.long_from_longlong(c.builder.ptrtoint(pointer, INT64))
    row = c.pyapi.call_function_objargs(viewer, (number,))
    c.pyapi.decref(number)
    c.pyapi.decref(viewer)
    return row


# --- fields


@infer_getattr
class _Field(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Any, field: str) -> types.Type | None:
        kind = RECORDS[reference.record].__annotations__.get(field)
        return None if kind is None else numba_type(kind)


def _place(context: Any, builder: Any, reference: Any, pointer: Any, field: str) -> Any:
    """Return the address of a field, with the type of the field's value."""
    kinds = RECORDS[reference.record].__annotations__
    offset = ir.Constant(INT64, WORD * list(kinds).index(field))
    value = context.get_data_type(numba_type(kinds[field]))
    return builder.bitcast(builder.gep(pointer, [offset]), value.as_pointer())


@lower_getattr_generic(Reference)
def _read_field(context: Any, builder: Any, kind: Any, pointer: Any, field: str) -> Any:
    return builder.load(_place(context, builder, kind, pointer, field))


@lower_setattr_generic(Reference)
def _write_field(context: Any, builder: Any, sig: Any, args: Any, field: str) -> None:
    builder.store(args[1], _place(context, builder, sig.args[0], args[0], field))


# --- lists


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], List) and isinstance(args[1], types.Integer):
            return signature(numba_type(args[0].item), args[0], types.int64)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 3 and args[0] == List("int") and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], types.int64, types.int64)
        return None


def _entry(builder: Any, item: str, pointer: Any, index: Any) -> Any:
    width = ir.Constant(INT64, WORD * _words(item))
    return builder.gep(pointer, [builder.mul(index, width)])


@lower_builtin(operator.getitem, List, types.int64)
def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    item = sig.args[0].item
    place = _entry(builder, item, *args)
    return place if item in RECORDS else builder.load(builder.bitcast(place, INT64.as_pointer()))


@lower_builtin(operator.setitem, List, types.int64, types.int64)
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> None:
    place = _entry(builder, "int", args[0], args[1])
    builder.store(args[2], builder.bitcast(place, INT64.as_pointer()))


# --- comparisons


def _compare(operation: Any, predicate: str) -> None:
    @infer_global(operation)
    class _Comparison(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], Reference) and args[0] == args[1]:
                return signature(types.boolean, *args)
            return None

    @lower_builtin(operation, Reference, Reference)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second = (builder.ptrtoint(each, INT64) for each in args)
        return builder.icmp_unsigned(predicate, first, second)


_compare(operator.eq, "==")
_compare(operator.ne, "!=")
