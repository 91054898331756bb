"""Compiles one exported program for a device by its name, and prints what it needs as JSON.

    .venv-tpu/bin/python -m experiments.benchmarks.tpu_compiler v5e out/v5e/program.hlo

It runs where JAX is, with libtpu or the plugin for GPUs, and neither TensorFlow nor the device.
`experiments.benchmarks.check_tpu` exports programs and calls it.
"""

import dataclasses
import json
import pathlib
import re
import sys

from experiments.benchmarks.private_jax import Compiled, compile_for_h100, compile_for_tpu

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_USED = re.compile(r"Used ([\d.]+)([KMG]) of [\d.]+[KMG] hbm")
_DYNAMIC = re.compile(r"\[[^\]]*<=\d")  # a dimension of a shape such as f32[<=8,128]


@dataclasses.dataclass(frozen=True)
class Needs:
    """A program's needs of a chip, in bytes and floating point operations."""

    arguments: float  # weights, optimizer state and batch, which the results take the place of
    temporaries: float  # all else that is in the chip's memory at once
    flops: float = 0.0
    bytes_moved: float = 0.0  # read from memory and written to it; 0 where nobody counts
    num_dynamic: int = 0  # shapes that are known only when it runs
    fits: bool = True  # whether the compiler found room for it

    @property
    def memory(self) -> float:
        """Bytes in all."""
        return self.arguments + self.temporaries

    def at(self, layers: int, here: int, fewer: "Needs", there: int) -> "Needs":
        """The needs with more layers, by a line through this and one with fewer."""
        values, others = dataclasses.asdict(self), dataclasses.asdict(fewer)
        slope = {name: (values[name] - others[name]) / (here - there) for name in values}
        line = {name: values[name] + slope[name] * (layers - here) for name in values}
        num_dynamic = self.num_dynamic + fewer.num_dynamic
        return Needs(**line | {"num_dynamic": num_dynamic, "fits": self.fits and fewer.fits})


def needs(program: Compiled) -> Needs:
    """Those of a program, as the compiler says them."""
    compiled, cost = program
    (optimised,), sizes = compiled.hlo_modules(), compiled.get_compiled_memory_stats()
    results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    code = sizes.generated_code_size_in_bytes
    return Needs(
        arguments=sizes.argument_size_in_bytes,
        temporaries=sizes.temp_size_in_bytes + results + code,
        flops=cost["flops"],
        bytes_moved=cost.get("bytes accessed", 0.0),
        num_dynamic=len(_DYNAMIC.findall(optimised.to_string())),
    )


def needs_too_much(message: str) -> Needs | None:
    """Reads the compiler's error about a program that is too large; None for another error."""
    used = _USED.search(message)
    if used is None:
        return None
    return Needs(0.0, float(used[1]) * _UNITS[used[2]], fits=False)


def main() -> None:
    device, program = sys.argv[1], pathlib.Path(sys.argv[2])
    compile_program = {"v5e": compile_for_tpu, "h100": compile_for_h100}[device]
    try:
        result = needs(compile_program(program.read_bytes()))
    except RuntimeError as error:  # JAX's is one
        too_large = needs_too_much(str(error))
        if too_large is None:
            raise
        program.with_suffix(".txt").write_text(str(error), encoding="utf-8")
        result = too_large
    print(json.dumps(dataclasses.asdict(result)))


if __name__ == "__main__":
    main()
