"""Parts of JAX that the benchmarks cannot count on: programs compiled for devices by XLA alone.

JAX is 0.10.2 in .venv-tpu and .venv-gpu (Makefile), and 0.11.2 where there is a GPU. Each library
is imported by the function that needs it.
"""

import os
from collections.abc import Callable
from typing import Any

# A program that was compiled for a device that need not be there, and its cost: "flops" and, for a
# TPU, "bytes accessed", among others.
Compiled = tuple[Any, dict[str, float]]

# What XLA's compiler asks of a GPU, as its GpuTargetConfigProto has it.
_H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 12 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def compile_for_h100(program: bytes) -> Compiled:
    """Compiles a serialized HLO module for an H100 that need not be there.

    Kernels are chosen without trying them. RuntimeError if it does not compile.
    """
    os.environ["XLA_FLAGS"] = "--xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    from jax._src.lib import xla_client
    from jax.experimental import topologies

    (cpu,) = jax.devices("cpu")  # which also finds the plugin
    (device,) = topologies.get_topology_desc(
        "h100", "cuda", target_config=_H100, topology="1x1x1"
    ).devices
    compiled = compile_for_device(program, device, loads=False)
    # Of the program as it was given: products are calls of libraries in the other.
    given = xla_client.hlo.HloModule.from_serialized_hlo_module_proto(program)
    flops = xla_client._xla.hlo_module_cost_analysis(cpu.client, given)["flops"]
    return compiled, {"flops": flops}


def compile_for_tpu(program: bytes) -> Compiled:
    """Compiles a serialized HLO module for a TPU that need not be there; errors as above."""
    # Read by libtpu: where there is no TPU, it would wait for a machine's description.
    os.environ |= {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # nothing is shared where there is no TPU
        "JAX_PLATFORMS": "cpu",
    } | os.environ
    from jax.experimental import topologies

    (device,) = topologies.get_topology_desc(
        "v5e:1x1", "tpu", chips_per_host_bounds=(1, 1, 1), num_slices=1
    ).devices
    compiled = compile_for_device(program, device, _draw_as_tpu, loads=False)
    return compiled, compiled.cost_analysis()


def compile_for_device(
    program: bytes,
    device: Any,
    change: Callable[[Any], None] = lambda module: None,
    loads: bool = True,
) -> Any:
    """Compiles a serialized HLO module, after a change to its StableHLO, for one of JAX's devices.

    Once it is loaded there, the result's `execute` takes and returns lists of arrays.
    """
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client

    compiles = device.client.compile_and_load if loads else device.client.compile
    with mlir.make_ir_context():
        module = _module(program)
        change(module)
        return compiles(module, xla_client.DeviceList((device,)), xla_client.CompileOptions())


def _draw_as_tpu(module: Any) -> None:
    """Draws random numbers by the chip's own generator, as TensorFlow does on a TPU.

    A program that was made where there is none draws them by Philox, which takes a TPU thousands of
    operations and up to 32 times the memory of its results.
    """
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import hlo

    for operation in _operations(module, "stablehlo.rng_bit_generator"):
        # Philox has a key and two counters, uint64 [3]; this one a key and a counter.
        with ir.InsertionPoint(operation), operation.location:
            attributes = [ir.DenseI64ArrayAttr.get([number]) for number in (0, 2, 3, 1)]
            begin, middle, end, step = attributes
            state = hlo.slice(operation.operands[0], begin, middle, step)
            algorithm = hlo.RngAlgorithmAttr.get("DEFAULT")
            results = state.type, operation.results[1].type
            own = hlo.RngBitGeneratorOp(*results, algorithm, state)
            rest = hlo.slice(operation.operands[0], middle, end, step)
            new = hlo.concatenate([own.results[0], rest], 0)
        operation.results[0].replace_all_uses_with(new)
        operation.results[1].replace_all_uses_with(own.results[1])
        operation.erase()


def _module(program: bytes) -> Any:
    """A serialized HLO module as StableHLO; within one of MLIR's contexts."""
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    module = ir.Module.parse(xla_client._xla.mlir.hlo_to_stablehlo(program))
    for copy in _operations(module, "mhlo.copy"):  # of results; StableHLO has none
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()
    return module


def _operations(module: Any, name: str) -> list[Any]:
    from jax._src.lib.mlir import ir

    found = []

    def visit(operation: Any) -> Any:
        if operation.name == name:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
