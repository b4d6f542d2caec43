"""Values that write down what is done with them, as code for the processor.

A rule by coordinates is written with operations on tensors. Each of them reads and writes whole
tensors, which takes longer than its arithmetic. A rule that is given :class:`Lanes` instead of
tensors writes the same operations as instructions for a few coordinates at a time, whose values
stay in the processor's registers from the first operation to the last.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from llvmlite import ir

#: The types that code is written for.
TYPES = {
    torch.bool: ir.IntType(1),
    torch.float32: ir.FloatType(),
    torch.float64: ir.DoubleType(),
}

Operand: TypeAlias = "Lanes | bool | int | float"


class CannotRecordError(Exception):
    """Something is done with the values for which no code can be written."""


class Lanes:
    """A value at some coordinates, side by side, in code that is being written; used like a tensor.

    Of torch's functions and methods it has those in :data:`FUNCTIONS`, of operators those of
    arithmetic, comparison and logic. Types are promoted as torch does.

    Attributes:
        code: the value in the code, a vector.
        dtype: its type.
    """

    def __init__(self, builder: ir.IRBuilder, code: Any, dtype: torch.dtype) -> None:
        self._builder, self.code, self.dtype = builder, code, dtype

    @classmethod
    def constant(
        cls, builder: ir.IRBuilder, number: float, dtype: torch.dtype, lanes: int
    ) -> "Lanes":
        """The same number in every coordinate."""
        kind = ir.VectorType(TYPES[dtype], lanes)
        each = bool(number) if dtype == torch.bool else float(number)
        return cls(builder, ir.Constant(kind, [each] * lanes), dtype)

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> "Lanes":
        """What torch calls instead of one of its functions."""
        if function not in FUNCTIONS:
            raise CannotRecordError(f"{function} has no code")
        return FUNCTIONS[function](*args, **kwargs or {})

    def clone(self) -> "Lanes":
        """The same values in an object of their own."""
        return self._made(self.code, self.dtype)

    def to(self, dtype: torch.dtype) -> "Lanes":
        """The same values in another type; the object itself if it has that type."""
        if dtype == self.dtype:
            return self
        if dtype not in TYPES or dtype == torch.bool:
            raise CannotRecordError(f"{self.dtype} cannot become {dtype}")
        if self.dtype == torch.bool:
            return self.where(self._like(1.0, dtype), self._like(0.0, dtype))
        kind = ir.VectorType(TYPES[dtype], self.code.type.count)
        wider = dtype == torch.float64
        convert = self._builder.fpext if wider else self._builder.fptrunc
        return self._made(convert(self.code, kind), dtype)

    def where(self, chosen: Operand, other: Operand) -> "Lanes":
        """``chosen`` where this is true, ``other`` elsewhere."""
        if self.dtype != torch.bool:
            raise CannotRecordError(f"a condition of {self.dtype}")
        one, two = self._pair(chosen, other)
        return self._made(self._builder.select(self.code, one.code, two.code), one.dtype)

    def minimum(self, other: Operand) -> "Lanes":
        """The lower value; NaN where one is NaN."""
        return self._extreme(other, "llvm.minimum")

    def maximum(self, other: Operand) -> "Lanes":
        """The higher value; NaN where one is NaN."""
        return self._extreme(other, "llvm.maximum")

    def clamp(self, min: "Operand | None" = None, max: "Operand | None" = None) -> "Lanes":
        """The value, or the bound that it is beyond."""
        found = self if min is None else self.maximum(min)
        return found if max is None else found.minimum(max)

    def sqrt(self) -> "Lanes":
        """The square root."""
        return self._called("llvm.sqrt")

    def abs(self) -> "Lanes":
        """The size."""
        return self._called("llvm.fabs")

    def sign(self) -> "Lanes":
        """−1, 0 or 1."""
        return (self > 0).to(self.dtype) - (self < 0).to(self.dtype)

    def isnan(self) -> "Lanes":
        """Whether it is NaN."""
        return self != self

    def isfinite(self) -> "Lanes":
        """Whether it is a number."""
        return self.abs() < torch.inf

    def __add__(self, other: Operand) -> "Lanes":
        return self._with(other, self._builder.fadd)

    def __sub__(self, other: Operand) -> "Lanes":
        return self._with(other, self._builder.fsub)

    def __mul__(self, other: Operand) -> "Lanes":
        return self._with(other, self._builder.fmul)

    def __truediv__(self, other: Operand) -> "Lanes":
        return self._with(other, self._builder.fdiv)

    def __radd__(self, other: Operand) -> "Lanes":
        return self + other

    def __rsub__(self, other: Operand) -> "Lanes":
        return self._with(other, self._builder.fsub, swapped=True)

    def __rmul__(self, other: Operand) -> "Lanes":
        return self * other

    def __rtruediv__(self, other: Operand) -> "Lanes":
        return self._with(other, self._builder.fdiv, swapped=True)

    def __neg__(self) -> "Lanes":
        return self._made(self._builder.fneg(self._number().code), self.dtype)

    # In place, so that whatever else has this object's name sees the change, as with tensors.

    def __iadd__(self, other: Operand) -> "Lanes":
        return self._becomes(self + other)

    def __isub__(self, other: Operand) -> "Lanes":
        return self._becomes(self - other)

    def __imul__(self, other: Operand) -> "Lanes":
        return self._becomes(self * other)

    def __itruediv__(self, other: Operand) -> "Lanes":
        return self._becomes(self / other)

    def __lt__(self, other: Operand) -> "Lanes":
        return self._compared(other, "<")

    def __le__(self, other: Operand) -> "Lanes":
        return self._compared(other, "<=")

    def __gt__(self, other: Operand) -> "Lanes":
        return self._compared(other, ">")

    def __ge__(self, other: Operand) -> "Lanes":
        return self._compared(other, ">=")

    def __eq__(self, other: object) -> "Lanes":  # type: ignore[override]
        return self._compared(other, "==")

    def __ne__(self, other: object) -> "Lanes":  # type: ignore[override]
        return self._compared(other, "!=")

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Operand) -> "Lanes":
        return self._logic(other, self._builder.and_)

    def __or__(self, other: Operand) -> "Lanes":
        return self._logic(other, self._builder.or_)

    def __invert__(self) -> "Lanes":
        return self._logic(True, self._builder.xor)

    def __bool__(self) -> bool:
        raise CannotRecordError("what is done depends on the values")

    def _made(self, code: Any, dtype: torch.dtype) -> "Lanes":
        return Lanes(self._builder, code, dtype)

    def _like(self, number: float, dtype: torch.dtype) -> "Lanes":
        return Lanes.constant(self._builder, number, dtype, self.code.type.count)

    def _becomes(self, other: "Lanes") -> "Lanes":
        self.code = other.to(self.dtype).code
        return self

    def _number(self) -> "Lanes":
        """This, which must not be a boolean."""
        if self.dtype == torch.bool:
            raise CannotRecordError("arithmetic with booleans")
        return self

    def _pair(self, one: object, two: object) -> tuple["Lanes", "Lanes"]:
        """Both with the type that torch promotes them to; numbers take the type of the other."""
        kinds = [each.dtype for each in (one, two) if isinstance(each, Lanes)]
        dtype = torch.get_default_dtype()
        if kinds:
            dtype = torch.promote_types(kinds[0], kinds[-1])
        pair = []
        for each in (one, two):
            if isinstance(each, Lanes):
                pair.append(each.to(dtype))
            elif not isinstance(each, bool | int | float):
                raise CannotRecordError(f"an operation with a {type(each).__name__}")
            elif dtype == torch.bool and not isinstance(each, bool):
                raise CannotRecordError("an operation of a boolean and a number")
            else:
                pair.append(self._like(each, dtype))
        return pair[0], pair[1]

    def _with(
        self, other: object, operation: Callable[[Any, Any], Any], swapped: bool = False
    ) -> "Lanes":
        pair = self._pair(self, other)
        one, two = (each._number().code for each in (reversed(pair) if swapped else pair))
        return self._made(operation(one, two), pair[0].dtype)

    def _extreme(self, other: object, name: str) -> "Lanes":
        one, two = self._pair(self, other)
        return one._number()._called(name, two)

    def _called(self, name: str, *others: "Lanes") -> "Lanes":
        """What one of LLVM's own functions makes of numbers of one type."""
        codes = [each.code for each in (self._number(), *others)]
        kind, module = codes[0].type, self._builder.module
        name = f"{name}.v{kind.count}f{8 * self.dtype.itemsize}"
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [kind] * len(codes)), name)
        return self._made(self._builder.call(function, codes), self.dtype)

    def _compared(self, other: object, how: str) -> "Lanes":
        one, two = self._pair(self, other)
        # NaN differs from everything, and nothing else is true of it.
        compare = self._builder.fcmp_unordered if how == "!=" else self._builder.fcmp_ordered
        return self._made(compare(how, one._number().code, two.code), torch.bool)

    def _logic(self, other: object, operation: Callable[[Any, Any], Any]) -> "Lanes":
        one, two = self._pair(self, other)
        if one.dtype != torch.bool:
            raise CannotRecordError(f"logic with {one.dtype}")
        return self._made(operation(one.code, two.code), torch.bool)


def _full_like(like: Lanes, number: float, *, dtype: torch.dtype | None = None) -> Lanes:
    return like._like(number, like.dtype if dtype is None else dtype)


#: Functions of torch for which code can be written.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Lanes]] = {
    torch.abs: Lanes.abs,
    torch.clamp: Lanes.clamp,
    torch.full_like: _full_like,
    torch.isfinite: Lanes.isfinite,
    torch.isnan: Lanes.isnan,
    torch.maximum: Lanes.maximum,
    torch.minimum: Lanes.minimum,
    torch.sign: Lanes.sign,
    torch.sqrt: Lanes.sqrt,
    torch.where: Lanes.where,
    torch.zeros_like: lambda like, **how: _full_like(like, 0.0, **how),
}
