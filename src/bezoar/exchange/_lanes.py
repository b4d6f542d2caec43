"""Objects that stand for tensors and record the operations on them as instructions of LLVM.

A rule by coordinates is written with operations on tensors. Each of them reads and writes whole
tensors, which takes longer than its arithmetic. A rule that is given :class:`Lanes` instead of
tensors records the same operations as instructions for a few coordinates at a time, whose values
stay in the processor's registers from the first operation to the last.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from llvmlite import ir
from torch import Tensor

#: The types that code is written for.
TYPES = {
    torch.bool: ir.IntType(1),
    torch.float32: ir.FloatType(),
    torch.float64: ir.DoubleType(),
}

Operand: TypeAlias = "Lanes | bool | int | float"


class CannotRecordError(Exception):
    """An operation cannot be recorded."""


class Lanes:
    """Values of neighbouring coordinates in code that is being written; used like a tensor.

    Of torch's functions and methods it has those in :data:`FUNCTIONS`, of operators those of
    arithmetic, comparison and logic. Types are promoted as torch does.

    Attributes:
        code: the value in the code, a vector.
        dtype: its type.
        single: whether it stands for a tensor without dimensions, the same in every coordinate. The
            type of such a tensor gives way to that of the others.
    """

    def __init__(
        self, builder: ir.IRBuilder, code: Any, dtype: torch.dtype, single: bool = False
    ) -> None:
        self._builder, self.code, self.dtype, self.single = builder, code, dtype, single

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
        return self._made(self.code, self.dtype, self.single)

    def to(self, dtype: torch.dtype) -> "Lanes":
        """The same values in another type; the object itself if it has that type."""
        if dtype == self.dtype:
            return self
        if dtype not in TYPES or dtype == torch.bool:
            raise CannotRecordError(f"{self.dtype} cannot become {dtype}")
        if self.dtype == torch.bool:
            one, zero = self._like(1.0, dtype), self._like(0.0, dtype)
            return self._made(
                self._builder.select(self.code, one.code, zero.code), dtype, self.single
            )
        kind = ir.VectorType(TYPES[dtype], self.code.type.count)
        wider = dtype == torch.float64
        convert = self._builder.fpext if wider else self._builder.fptrunc
        return self._made(convert(self.code, kind), dtype, self.single)

    def where(self, chosen: Operand, other: Operand) -> "Lanes":
        """``chosen`` where this is true, ``other`` elsewhere."""
        if self.dtype != torch.bool:
            raise CannotRecordError(f"a condition of {self.dtype}")
        one, two = self._pair(chosen, other)
        single = self.single and one.single and two.single
        return self._made(self._builder.select(self.code, one.code, two.code), one.dtype, single)

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
        """The absolute value."""
        return self._called("llvm.fabs")

    def sign(self) -> "Lanes":
        """−1, 0 or 1."""
        return (self > 0).to(self.dtype) - (self < 0).to(self.dtype)

    def isnan(self) -> "Lanes":
        """Whether it is NaN."""
        return self != self

    def isfinite(self) -> "Lanes":
        """Whether it is neither NaN nor infinite."""
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
        one = self._number()._like(1.0, self.dtype)
        return one / self * other  # so does torch, which rounds twice

    def __neg__(self) -> "Lanes":
        return self._made(self._builder.fneg(self._number().code), self.dtype, self.single)

    # These change the object itself: other names of the object see the change, as with tensors.

    def __iadd__(self, other: Operand) -> "Lanes":
        return self._becomes(self + other)

    def __isub__(self, other: Operand) -> "Lanes":
        return self._becomes(self - other)

    def __imul__(self, other: Operand) -> "Lanes":
        return self._becomes(self * other)

    def __itruediv__(self, other: Operand) -> "Lanes":
        return self._becomes(self / other)

    def __iand__(self, other: Operand) -> "Lanes":
        return self._becomes(self & other)

    def __ior__(self, other: Operand) -> "Lanes":
        return self._becomes(self | other)

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

    def _made(self, code: Any, dtype: torch.dtype, single: bool) -> "Lanes":
        return Lanes(self._builder, code, dtype, single)

    def _like(self, number: float, dtype: torch.dtype, single: bool = True) -> "Lanes":
        """The same number in every coordinate."""
        lanes = self.code.type.count
        each = bool(number) if dtype == torch.bool else float(number)
        constant = ir.Constant(ir.VectorType(TYPES[dtype], lanes), [each] * lanes)
        return self._made(constant, dtype, single)

    def _becomes(self, other: "Lanes") -> "Lanes":
        if self.single and not other.single:
            raise CannotRecordError("a tensor without dimensions cannot get some")
        self.code = other.to(self.dtype).code
        return self

    def _number(self) -> "Lanes":
        """This, which must not be a boolean."""
        if self.dtype == torch.bool:
            raise CannotRecordError("arithmetic with booleans")
        return self

    def _pair(self, one: object, two: object) -> tuple["Lanes", "Lanes"]:
        """Both with the type that torch promotes them to."""
        dtype = torch.result_type(_stand_in(one), _stand_in(two))
        if dtype not in TYPES:
            raise CannotRecordError(f"an operation in {dtype}")
        first, second = (
            each.to(dtype) if isinstance(each, Lanes) else self._like(each, dtype)  # type: ignore[arg-type]
            for each in (one, two)
        )
        return first, second

    def _with(
        self, other: object, operation: Callable[[Any, Any], Any], swapped: bool = False
    ) -> "Lanes":
        pair = self._pair(self, other)
        one, two = (each._number() for each in (reversed(pair) if swapped else pair))
        return self._made(operation(one.code, two.code), one.dtype, one.single and two.single)

    def _extreme(self, other: object, name: str) -> "Lanes":
        one, two = self._pair(self, other)
        return one._number()._called(name, two)

    def _called(self, name: str, *others: "Lanes") -> "Lanes":
        """What one of LLVM's own functions makes of numbers of one type."""
        codes = [each.code for each in (self._number(), *others)]
        single = all(each.single for each in (self, *others))
        kind, module = codes[0].type, self._builder.module
        name = f"{name}.v{kind.count}f{8 * self.dtype.itemsize}"
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [kind] * len(codes)), name)
        return self._made(self._builder.call(function, codes), self.dtype, single)

    def _compared(self, other: object, how: str) -> "Lanes":
        one, two = self._pair(self, other)
        # NaN differs from everything, and nothing else is true of it.
        compare = self._builder.fcmp_unordered if how == "!=" else self._builder.fcmp_ordered
        code = compare(how, one._number().code, two.code)
        return self._made(code, torch.bool, one.single and two.single)

    def _logic(self, other: object, operation: Callable[[Any, Any], Any]) -> "Lanes":
        one, two = self._pair(self, other)
        if one.dtype != torch.bool:
            raise CannotRecordError(f"logic with {one.dtype}")
        return self._made(operation(one.code, two.code), torch.bool, one.single and two.single)


def _stand_in(operand: object) -> Tensor | bool | int | float:
    """What torch promotes like an operand."""
    if isinstance(operand, Lanes):
        return torch.empty(() if operand.single else (1,), dtype=operand.dtype)
    if not isinstance(operand, bool | int | float):
        raise CannotRecordError(f"an operation with a {type(operand).__name__}")
    return operand


def _full_like(like: Lanes, number: float, *, dtype: torch.dtype | None = None) -> Lanes:
    return like._like(number, like.dtype if dtype is None else dtype, like.single)


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
