# RUN: %python %s --count 120 --seed 7 --jobs 2 --tool both --save %t
"""Seeded mutation fuzzer: no input may crash or hang a tool.

    fuzz.py --count 1000 --seed 1 --tool both        1000 inputs, half of them for each tool
    fuzz.py --seed 1 --only 417                       input 417 of that run alone; what it was is printed

Patterns of the repository are changed a little and given to ssa-opt (check, optimize, print; what it prints is read
again) and to ssa-run (with random inputs of the sizes that the entry's signature asks for). A tool may refuse an input
with a message and exit code 1. A signal, a stack dump, another exit code or no message is a crash; no answer in time is
a hang. Inputs that fail are saved with the command and what it said. Input I of a seed depends on nothing but the
patterns.

Environment: SSA_OPT and SSA_RUN are the paths of the tools (else they are looked up on PATH).
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY = 8 << 30
TIMEOUT = 20

# Functions of upstream MLIR that are known to die on input that has nothing of ours; told apart, not counted.
UPSTREAM = [
    b"mlir::tensor::ConcatOp::verify()",  # tensor.concat dim(-1) (seed 101, input 4704)
]

NUMBERS = """
    0 1 -1 2 3 7 16 63 64 65 4096 4097 65536 2147483647 2147483648 -2147483648 4294967296 9223372036854775807
    9223372036854775808 -9223372036854775808 18446744073709551615 99999999999999999999999 0.5 1.0e30 1.0e300 -0.0
    0x7FF0000000000000 ?
""".split()
ELEMENTS = """
    f32 bf16 f16 f8E4M3FN f64 i32 i64 i8 i1 index f8E5M2 si32 ui64 tf32 complex<f32> vector<4xf32>
    !ssa.selection<1x1x1x1>
""".split()
TYPES = re.split(
    r"\s*\|\s*",
    """
    tensor<f32> | tensor<*xf32> | tensor<?xf32> | memref<?xf32> | vector<4xf32> | index | i32 | f32 | none | () |
    tensor<0x2x3x16xf32> | tensor<1x2x3x16xf32> | tensor<1x2x?x16xbf16> | tensor<1x2x3x4xi32> | tensor<?x?x?x?xf32> |
    !ssa.selection<1x2x3x4, key_block = 16> | !ssa.selection<?x2x?x4, key_block = 16, query_block = 4, sorted> |
    !ssa.selection<1x1x1x0, key_block = 1, sorted> | tuple<> | (f32) -> f32
""".strip(),
)
ATTRIBUTES = re.split(
    r"\s*\|\s*",
    """
    #ssa.blocks<64> | #ssa.blocks<8, stride = 4, offset = -4> | #ssa.blocks<1> | #ssa.mask<causal> |
    #ssa.mask<window = 2, sink = 1> | #ssa<reduction max> | #ssa<gate none> | #ssa.target<sm_90a> |
    dense<1.0> : tensor<4xf32> | [] | [1, 2] | {} | unit | true | "text" | affine_map<(d0) -> (d0)> |
    array<i32: 1, 1, 1> | @symbol | f32 | none | 0x7FF8000000000000 : f64
""".strip(),
)
WORDS = """
    of for at within weights scales score bound sink_logits scale mask blocks from to query_block key_block stride
    offset causal window sink visible normalize reduce gate top_p threshold init_blocks local_blocks sorted none sum
    max mean min softmax partial complete sigmoid kind operandSegmentSizes ssa.route ssa.topk ssa.sparse_attend
    ssa.pool ssa.rebin ssa.project ssa.gather ssa.sort ssa.union ssa.merge ssa.mix ssa.yield ssa.from_indices
    ssa.to_indices func.func return private linalg.generic arith.constant
""".split()
CHIPS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
TOKEN = re.compile(r"%[\w$.#:]+|[#!@^]?[A-Za-z_][\w.$]*|-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?|\"[^\"\n]*\"|->|\s+|.", re.S)
NUMBER = re.compile(r"(?<![\w#%.])-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?(?![\w.])|(?<=[x<])(?:\d+|\?)(?=[x,>])")
TYPE = re.compile(r"(?:tensor|!ssa\.selection|memref|vector)<[^<>]*>")
ATTRIBUTE = re.compile(r"#ssa\.\w+<[^<>]*>|#ssa<[^<>]*>|dense<[^<>]*>")


def corpus():
    """Patterns to change, without their comments: those that are right, and those that tests expect to be refused."""
    right, wrong = [], []
    for path in sorted((ROOT / "examples").glob("*.mlir")) + sorted((ROOT / "test").glob("**/*.mlir")):
        for part in re.split(r"^// -----.*$", path.read_text(), flags=re.M):
            refused = "expected-error" in part
            text = re.sub(r"^\s*//.*\n", "", part, flags=re.M).strip() + "\n"
            (wrong if refused else right).append(text)
            # A function alone, with the aliases in front: more of it stays right.
            functions = [
                f
                for f in re.findall(r"^func\.func @.*?^}\n", text, flags=re.M | re.S)
                if " call @" not in f and "func.call" not in f
            ]
            aliases = "".join(re.findall(r"^[!#]\w+ = .*\n", text, flags=re.M))
            if not refused and len(functions) > 1:
                right += [aliases + f for f in functions]
    return right, wrong


# ---------------------------------------------------------------------------------------------------------------------
# Mutations: each takes the random generator, a text and all texts, and gives another text


def replace_match(rng, text, pattern, choose):
    """One match of the pattern replaced by what `choose` makes of it."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    m = rng.choice(found)
    return text[: m.start()] + choose(m[0]) + text[m.end() :]


def truncate(rng, text, texts):
    return text[: rng.randrange(len(text) + 1)]


def flip_bytes(rng, text, texts):
    data = bytearray(text, "utf-8", "surrogateescape")
    for _ in range(rng.randint(1, 4)):
        if data:
            i = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[i] ^= 1 << rng.randrange(8)
            else:
                data.insert(i, rng.randrange(256))
    return data.decode("utf-8", "surrogateescape")


def change_tokens(rng, text, texts):
    tokens = TOKEN.findall(text)
    words = [i for i, t in enumerate(tokens) if not t.isspace()]
    if len(words) < 2:
        return text
    i, j = rng.choice(words), rng.choice(words)
    kind = rng.randrange(5)
    if kind == 0:
        tokens[i], tokens[j] = tokens[j], tokens[i]
    elif kind == 1:
        del tokens[i : i + rng.randint(1, 6)]
    elif kind == 2:
        tokens[j:j] = tokens[i : i + rng.randint(1, 12)]
    elif kind == 3:
        tokens[i] = rng.choice(WORDS)
    else:
        tokens[i] = rng.choice([t for t in TOKEN.findall(rng.choice(texts)) if not t.isspace()] or [""])
    return "".join(tokens)


def change_number(rng, text, texts):
    small = rng.random() < 0.5
    return replace_match(
        rng, text, NUMBER, lambda m: rng.choice(["0", "1", "2", "3", "4", "5", "8", "16", "?"] if small else NUMBERS)
    )


def change_type(rng, text, texts):
    def other(m):
        kind = rng.randrange(4)
        if kind == 0:
            return rng.choice(TYPES)
        if kind == 1:
            return rng.choice(TYPE.findall(rng.choice(texts)) or TYPES)
        if kind == 2:
            return re.sub(r"(?<=x)[a-z]\w*(?=>)", lambda _: rng.choice(ELEMENTS), m)
        return replace_match(
            rng,
            m,
            re.compile(r"(?<=[<x])(?:\d+|\?)(?=[x,])"),
            lambda _: rng.choice(["0", "1", "2", "5", "?", "2147483648"]),
        )

    return replace_match(rng, text, TYPE, other)


def change_all_of_a_type(rng, text, texts):
    """The same change wherever the type stands, so that more of it verifies."""
    found = TYPE.findall(text)
    if not found:
        return text
    old = rng.choice(found)
    new = replace_match(
        rng, old, re.compile(r"(?<=[<x])(?:\d+|\?)(?=[x,])"), lambda _: rng.choice(["0", "1", "2", "3", "5", "8", "?"])
    )
    return text.replace(old, new)


def change_attribute(rng, text, texts):
    return replace_match(rng, text, ATTRIBUTE, lambda m: rng.choice(ATTRIBUTES))


def change_operand(rng, text, texts):
    values = re.findall(r"%\w+", text)
    return replace_match(rng, text, re.compile(r"%\w+"), lambda m: rng.choice(values))


def change_lines(rng, text, texts):
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        del lines[i]
    elif kind == 2:
        lines.insert(j, lines[i])
    else:
        some = lines[min(i, j) : max(i, j)]
        rng.shuffle(some)
        lines[min(i, j) : max(i, j)] = some
    return "\n".join(lines)


MUTATIONS = (
    [truncate, flip_bytes, change_lines, change_type]
    + 2 * [change_operand, change_attribute, change_tokens]
    + 3 * [change_number]
    + 4 * [change_all_of_a_type]
)


def mutate(rng, right, wrong):
    text = rng.choice(wrong if rng.random() < 0.1 else right)
    for _ in range(rng.choice([0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 3, 5])):
        text = rng.choice(MUTATIONS)(rng, text, right)
    return text


# ---------------------------------------------------------------------------------------------------------------------
# Inputs of ssa-run


def resolve(kind, aliases, depth=4):
    """A type without aliases."""
    return resolve(aliases[kind], aliases, depth - 1) if depth and kind in aliases else kind


def input_of(rng, name, kind, sizes):
    """An input of a type, on the command line."""
    m = re.fullmatch(r"tensor<((?:(?:\d+|\?)x)*)(\w+)>", kind)
    if not m:
        return rng.choice(["value:1", "value:0", "value:-3"] + ([] if kind[:1] == "i" else ["value:1.5", "value:nan"]))
    shape = []
    for i, d in enumerate(m[1].split("x")[:-1]):
        size = sizes["B"] if i == 0 else sizes["M"] if name[1:2] in "qgxo" else sizes["N"]
        shape.append(str(size) if d == "?" else d)
    if rng.random() < 0.05 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(["0", "1", "2", "3", "-1", "4294967296", "9223372036854775807"])
    how = (
        rng.choice(["zeros", "arange"])
        if m[2][0] == "i"
        else rng.choice(["randn", "randn", "randn", "uniform", "zeros", "arange"])
    )
    return f"{how}:{'x'.join(shape)}"


def run_arguments(rng, text):
    """Arguments of ssa-run for one of the functions of a pattern."""
    aliases = dict(re.findall(r"^(![\w.]+)\s*=\s*(.*)$", text, flags=re.M))
    functions = re.findall(r"func\.func @([\w.$-]+)\(([^)]*)\)", text)
    if not functions:
        return ["--print"]
    name, arguments = rng.choice(functions)
    sizes = {"B": rng.choice([0, 1, 1, 2]), "M": rng.choice([0, 1, 2, 5, 17]), "N": rng.choice([0, 1, 5, 17, 70])}
    types = re.findall(r"(%[\w$.]+)\s*:\s*((?:[^,<>]|<[^<>]*>)+)", arguments)
    inputs = ",".join(input_of(rng, n, resolve(k.strip(), aliases), sizes) for n, k in types)
    return [f"--entry={name}", *(["--in", inputs] if inputs else []), "--print"]


def opt_arguments(rng):
    return rng.choice(
        [
            [],
            [],
            ["--ssa-optimize"],
            ["--ssa-optimize"],
            ["--mlir-print-op-generic"],
            ["--canonicalize", "--cse", "--inline"],
            ["--emit-bytecode"],
            ["--split-input-file"],
        ]
    )


# ---------------------------------------------------------------------------------------------------------------------
# Running


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def execute(command, data=None, patience=1):
    """What is wrong with how a command ends ('' if nothing), its exit code and output."""
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=patience * TIMEOUT, preexec_fn=limit_memory
        )
    except subprocess.TimeoutExpired as e:
        # On a busy machine a second chance tells what is slow from what does not end.
        return ("hang", None, b"", e.stderr or b"") if patience > 1 else execute(command, data, 4)
    error = done.stderr
    if done.returncode not in (0, 1) or b"PLEASE submit a bug report" in error or b"Stack dump:" in error:
        if any(name in error for name in UPSTREAM):
            return "upstream", done.returncode, done.stdout, error
        return "crash", done.returncode, done.stdout, error
    if done.returncode == 1 and not error.strip():
        return "crash", "1 without a message", done.stdout, error
    return "", done.returncode, done.stdout, error


class Fuzzer:
    def __init__(self, options):
        self.options = options
        self.texts = corpus()
        self.tools = {name: os.environ.get(name.upper().replace("-", "_"), name) for name in ("ssa-opt", "ssa-run")}
        self.names = list(self.tools) if options.tool == "both" else [options.tool]

    def make(self, i):
        """Input `i`: the tool, its arguments and the text."""
        rng = random.Random(f"{self.options.seed}:{i}")
        tool = self.names[i % len(self.names)]
        # Some patterns stay as they are, and only inputs vary.
        text = rng.choice(self.texts[0]) if tool == "ssa-run" and rng.random() < 0.25 else mutate(rng, *self.texts)
        data = text.encode("utf-8", "surrogateescape")
        if tool == "emit":
            return (
                "ssa-opt",
                [
                    rng.choice(["--emit=mlir", "--emit=mlir", "--emit=plan", "--emit=ptx"]),
                    "--chip=" + rng.choice(CHIPS),
                ],
                data,
            )
        return tool, opt_arguments(rng) if tool == "ssa-opt" else run_arguments(rng, text), data

    def check(self, i):
        """Runs input `i`; gives what is wrong ('crash', 'hang', 'upstream' or '')."""
        tool, arguments, data = self.make(i)
        with tempfile.NamedTemporaryFile(suffix=".mlir") as file:
            file.write(data)
            file.flush()
            verdict, code, out, error = execute([self.tools[tool], file.name, *arguments])
        if (
            not verdict
            and tool == "ssa-opt"
            and code == 0
            and not ("--split-input-file" in arguments or "--emit=" in str(arguments))
        ):
            # What was accepted and printed must be accepted again.
            verdict, code, again, error = execute([self.tools[tool], "-"], out)
            if not verdict and code != 0:
                verdict, error = "crash", b"what the tool printed it refuses:\n" + error + b"\n" + (
                    b"" if b"\0" in out else out
                )
        if verdict in ("crash", "hang"):
            self.save(i, tool, arguments, data, verdict, code, error)
        return verdict

    def save(self, i, tool, arguments, data, verdict, code, error):
        folder = pathlib.Path(self.options.save)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{tool}-{self.options.seed}-{i}.mlir"
        path.write_bytes(data)
        command = shlex.join([tool, str(path), *arguments])
        path.with_suffix(".txt").write_bytes(f"{verdict}, exit code {code}: {command}\n".encode() + error[-20000:])
        print(f"\n{verdict}, exit code {code}: {command}", file=sys.stderr, flush=True)

    def run(self):
        options, crashes, hangs, upstream, done = self.options, 0, 0, 0, 0
        indices = [options.only] if options.only is not None else range(options.count)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for verdict in pool.map(self.check, indices):
                done += 1
                crashes += verdict == "crash"
                hangs += verdict == "hang"
                upstream += verdict == "upstream"
                if sys.stderr.isatty() or done % 500 == 0:
                    print(
                        f"\r{done} of {len(indices)}, {crashes} crashes, {hangs} hangs",
                        end="",
                        file=sys.stderr,
                        flush=True,
                    )
        print(file=sys.stderr)
        known = f" ({upstream} more in functions of upstream MLIR that are known to crash)" if upstream else ""
        print(f"{done} inputs, {crashes} crashes, {hangs} hangs{known}")
        return crashes + hangs


parser = argparse.ArgumentParser(description="changes patterns and looks for crashes and hangs of the tools")
parser.add_argument("--count", type=int, default=1000, help="how many inputs")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
parser.add_argument(
    "--tool", choices=["ssa-opt", "ssa-run", "both", "emit"], default="both", help="'emit' is ssa-opt as a compiler"
)
parser.add_argument("--only", type=int, help="this input alone; its arguments and text are printed")
parser.add_argument("--save", default="fuzz-failures", help="the folder for inputs that fail")
fuzzer = Fuzzer(parser.parse_args())
if fuzzer.options.only is not None:
    tool, arguments, data = fuzzer.make(fuzzer.options.only)
    print(f"// {shlex.join([tool, *arguments])}\n{data.decode('utf-8', 'replace')}")
sys.exit(1 if fuzzer.run() else 0)
