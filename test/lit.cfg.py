import os
import shutil

import lit.formats

config.name = "ssa"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".py", ".c"]
config.excludes = ["Inputs", "Support", "Consumer", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ssa_build_root, "test")

if config.has_plugin:
    config.available_features.add("plugin")

bin_dir = os.path.join(config.ssa_build_root, "bin")
config.environment["PATH"] = os.pathsep.join([bin_dir, config.llvm_tools_dir, config.environment["PATH"]])
config.environment["PYTHONPATH"] = os.path.join(config.test_source_root, "Support")
config.environment["SSA_RUN"] = os.path.join(bin_dir, "ssa-run")
config.environment["SSA_OPT"] = os.path.join(bin_dir, "ssa-opt")
config.environment["SSA_BIN"] = bin_dir

config.substitutions += [
    ("%python", config.python),
    ("%source", config.ssa_source_root),
    ("%build", config.ssa_build_root),
    ("%llvm_tools", config.llvm_tools_dir),
    ("%mlir_dir", config.mlir_dir),
    ("%cmake", config.cmake),
    ("%cc", config.c_compiler),
    ("%cxx", config.cxx_compiler),
]

# The assembler of a CUDA toolkit, where ssa-opt would look for it.
cuda_dirs = [os.path.join(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
cuda_dirs.append("/usr/local/cuda/bin")
ptxas = shutil.which("ptxas") or shutil.which("ptxas", path=os.pathsep.join(cuda_dirs))
for name in ("CUDA_HOME", "CUDA_PATH"):
    if os.environ.get(name):
        config.environment[name] = os.environ[name]
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
