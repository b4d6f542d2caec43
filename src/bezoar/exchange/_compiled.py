"""Rules by coordinates as code for the processor.

What a rule does with the values of one coordinate is a few dozen additions and comparisons.
Compiled, they take about as long as it takes to read the messages and to write the models.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from typing import Any

import numpy as np
import torch
from llvmlite import binding, ir

from bezoar._arrays import Floats, Ints
from bezoar.aggregators import CoordinateAggregator
from bezoar.exchange._lanes import TYPES, CannotRecordError, Lanes
from bezoar.exchange._sorting import comparisons

#: Coordinates computed side by side: a line of the cache in float32.
LANES = 16

#: Coordinates computed at one place before the next place is: the places' common inputs stay in the
#: cache meanwhile.
BLOCK = 1024

#: Rules with more inputs are not compiled: that would take longer than it saves.
MOST_INPUTS = 128

_INT, _POINTER = ir.IntType(64), ir.PointerType()

#: Every piece of code has a name of its own.
_NUMBERS = count()


@dataclass(frozen=True)
class Kernel:
    """A rule for some number of inputs, compiled when it is first used.

    Attributes:
        rule: the rule.
        inputs: the number of inputs that are used.
        ends: how many values at either end need sorting, if the rule sorts.
        estimate: the estimated number of poisoned inputs.
        dtype: the type of the messages and models.
        sums: the type in which values are added up.
    """

    rule: CoordinateAggregator
    inputs: int
    ends: int
    estimate: int
    dtype: torch.dtype
    sums: torch.dtype

    def __call__(self, inputs: Ints, models: Ints, length: int, iteration: int) -> None:
        """Write the models.

        Args:
            inputs: ``[places, m]`` the addresses of the inputs, the own one first.
            models: ``[places]`` the addresses of the models, which must not overlap the inputs.
            length: how many coordinates follow each of the addresses.
            iteration: which iteration it is.
        """
        self._run(False, inputs, np.ascontiguousarray(models), length, iteration)

    def squared_distances(self, inputs: Ints, length: int, iteration: int) -> Floats:
        """``[places, m]`` how far the inputs are from what would be the model, squared.

        They are computed in float64. The arguments are those with which models are written.
        """
        sums = np.zeros((*inputs.shape, _lanes(length)))
        self._run(True, inputs, sums, length, iteration)
        found: Floats = sums.sum(-1)
        return found

    def can_compute(self, length: int) -> bool:
        """Whether the rule's operations on messages of this length can be written as code."""
        try:
            hash(self)
        except TypeError:  # of the rule's options; compiled code is found by them
            return False
        return _code(self, _lanes(length), False) is not None

    def _run(
        self,
        measure: bool,
        inputs: Ints,
        out: np.ndarray[Any, Any],
        length: int,
        iteration: int,
    ) -> None:
        if inputs.shape[1] != self.inputs or len(out) != len(inputs):  # or memory is misread
            raise ValueError(f"{inputs.shape} addresses of {self.inputs} inputs, {len(out)} places")
        code = _code(self, _lanes(length), measure)
        assert code is not None
        inputs = np.ascontiguousarray(inputs)
        code(len(inputs), length, inputs.ctypes.data, out.ctypes.data, float(iteration))

    def combine(self, values: Sequence[Lanes], iteration: Lanes) -> Lanes:
        """Write the code that makes the output of the inputs' values, which are free of NaN."""
        values = [value.clone() for value in values]  # the rule may write over them
        if self.rule.sorts:
            first = int(self.rule.keeps_own())
            values = values[:first] + _sorted(values[first:], self.ends)
        how: Any = (self.estimate, self.sums, iteration)
        made: Any = self.rule.combine(values, *how)  # type: ignore[arg-type]
        if not isinstance(made, Lanes):
            raise CannotRecordError(f"the rule returns a {type(made).__name__}")
        return made


class _Code:
    """A function in the processor's memory; its arguments are as :func:`_written` says."""

    def __init__(self, module: str) -> None:
        # LLVM's passes over the code would take as long again, and make it no faster.
        library = binding.JITLibraryBuilder().add_ir(module).export_symbol("kernel")
        self._library = library.link(_compiler(), f"kernel {next(_NUMBERS)}")  # owns the memory
        self._call = _FUNCTION(self._library["kernel"])

    def __call__(self, *arguments: float) -> None:
        self._call(*arguments)


_FUNCTION = ctypes.CFUNCTYPE(
    *(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double)
)


def _lanes(length: int) -> int:
    """How many of so many coordinates are computed side by side."""
    return LANES if length >= LANES else 1


@lru_cache(maxsize=2048)
def _code(kernel: Kernel, lanes: int, measure: bool) -> _Code | None:
    """The code that writes models, or that measures distances to them, if there is any."""
    if kernel.inputs > MOST_INPUTS or kernel.dtype not in TYPES:
        return None
    try:
        module = str(_written(kernel, lanes, measure))
    except Exception:  # a rule may raise anything where Lanes differ from tensors
        return None
    return _Code(module)


def _sorted(values: list[Lanes], ends: int) -> list[Lanes]:
    """The values, free of NaN, with so many ranks at either end in place."""
    for low, high in comparisons(len(values), ends):
        one, other = values[low], values[high]
        # Where they are equal, either may be the lower one.
        values[low], values[high] = (one < other).where(one, other), (one > other).where(one, other)
    return values


def _written(kernel: Kernel, lanes: int, measure: bool) -> ir.Module:
    """A module with the function.

    Its arguments are the number of places, the length, the table of the inputs' addresses, that of
    the models' addresses or ``[places, m, lanes]`` sums to which squared distances are added, and
    the iteration.
    """
    module = ir.Module(context=ir.Context())
    kind = ir.FunctionType(ir.VoidType(), [_INT, _INT, _POINTER, _POINTER, ir.DoubleType()])
    function = ir.Function(module, kind, "kernel")
    places, length, of_inputs, out, iteration = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    wide = ir.VectorType(ir.DoubleType(), lanes)
    known = Lanes(builder, _everywhere(builder, iteration, lanes), torch.float64, single=True)
    element, slots = TYPES[kernel.dtype], range(kernel.inputs)
    sums = [builder.alloca(wide) for _ in slots] if measure else []
    last = builder.sub(length, _INT(lanes))

    def block(start: Any) -> None:
        stop = _lower(builder, builder.add(start, _INT(BLOCK)), length)

        def place(number: Any) -> None:
            links = [builder.add(builder.mul(number, _INT(kernel.inputs)), _INT(n)) for n in slots]
            rows = [_address(builder, of_inputs, link) for link in links]

            def columns(column: Any) -> None:
                # What is left at the end is computed with some of what comes before it, again.
                first = _lower(builder, column, last)
                values = [_read(builder, row, first, kernel.dtype, lanes) for row in rows]
                made = kernel.combine(values, known)
                if measure:
                    new = _at_least(builder, first, column, lanes)
                    _add_distances(builder, values, made.to(torch.float64), new, sums)
                else:
                    at = builder.gep(_address(builder, out, number), [first], source_etype=element)
                    builder.store(made.to(kernel.dtype).code, at, align=kernel.dtype.itemsize)

            for total in sums:
                builder.store(ir.Constant(wide, None), total)
            _loop(builder, start, stop, lanes, columns)
            for link, total in zip(links, sums, strict=measure):
                at = builder.gep(out, [link], source_etype=wide)
                before = builder.load(at, align=8, typ=wide)
                builder.store(builder.fadd(before, builder.load(total, typ=wide)), at, align=8)

        _loop(builder, _INT(0), places, 1, place)

    _loop(builder, _INT(0), length, BLOCK, block)
    builder.ret_void()
    return module


def _read(builder: ir.IRBuilder, row: Any, first: Any, dtype: torch.dtype, lanes: int) -> Lanes:
    """The values of a row from its coordinate ``first`` on, with plus infinity for NaN."""
    at = builder.gep(row, [first], source_etype=TYPES[dtype])
    vector = ir.VectorType(TYPES[dtype], lanes)
    value = Lanes(builder, builder.load(at, align=dtype.itemsize, typ=vector), dtype)
    return (value < torch.inf).where(value, torch.inf)


def _add_distances(
    builder: ir.IRBuilder, values: Sequence[Lanes], made: Lanes, new: Lanes, sums: Sequence[Any]
) -> None:
    """Add how far the values are from the output, squared, to sums where coordinates are new."""
    for value, total in zip(values, sums, strict=True):
        apart = value.to(torch.float64) - made
        added = Lanes(builder, builder.load(total, typ=made.code.type), torch.float64)
        added += new.where(apart * apart, 0.0)
        builder.store(added.code, total)


def _everywhere(builder: ir.IRBuilder, number: Any, lanes: int) -> Any:
    """A vector with the same number in every lane."""
    vector = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    for lane in range(lanes):
        vector = builder.insert_element(vector, number, ir.IntType(32)(lane))
    return vector


def _at_least(builder: ir.IRBuilder, first: Any, least: Any, lanes: int) -> Lanes:
    """Which of the lanes, numbered from ``first``, have at least this number."""
    numbers = ir.Constant(ir.VectorType(_INT, lanes), list(range(lanes)))
    numbers = builder.add(numbers, _everywhere(builder, first, lanes))
    reached = builder.icmp_signed(">=", numbers, _everywhere(builder, least, lanes))
    return Lanes(builder, reached, torch.bool)


def _address(builder: ir.IRBuilder, table: Any, number: Any) -> Any:
    """The address that a table has at some place."""
    at = builder.gep(table, [number], source_etype=_INT)
    return builder.inttoptr(builder.load(at, typ=_INT), _POINTER)


def _lower(builder: ir.IRBuilder, one: Any, other: Any) -> Any:
    return builder.select(builder.icmp_signed("<", one, other), one, other)


def _loop(
    builder: ir.IRBuilder, start: Any, stop: Any, step: int, body: Callable[[Any], None]
) -> None:
    """``for number in range(start, stop, step): body(number)``."""
    before = builder.block
    head, inside, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(_INT)
    number.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", number, stop), inside, after)
    builder.position_at_end(inside)
    body(number)
    number.add_incoming(builder.add(number, _INT(step)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


@cache
def _compiler() -> binding.LLJIT:
    """The compiler for this processor. Nothing is fused: bits are the same everywhere."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot tell on every system; it then takes what all such have
        features = ""
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=2
    )
    return binding.create_lljit_compiler(machine)
