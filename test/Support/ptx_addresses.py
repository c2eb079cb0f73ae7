"""Looks in PTX for 32-bit products that may overflow on their way into a global address.

    ptx_addresses.py FILE.ptx ..      (or PTX on standard input)

Offsets of tensors do not fit in 32 bits, numbers of rows along one dimension do. A product (`mul.lo`, `mad.lo`, `shl` on 32 bits)
is accepted if the ranges of its factors prove that it fits, or if it reaches no global address; one by a constant power of two also if it is
multiplied by a stride, in 64 bits, on its way: then it is the number of a row. Prints each fault, and exits with 1 if there is one.
"""
import re
import sys

INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+(.*);\s*$")
REGISTER = re.compile(r"%[a-z]+\d+")
GLOBAL = re.compile(r"^(ld|ldu|st|atom|red|prefetch|cp\.async|cp\.reduce)\b")
MAX = 2**31 - 1  # such a number is the same signed and unsigned
# What addresses are computed with. What is counted, compared or packed on the way is no address any more.
ARITHMETIC = ("mov", "cvt", "add", "sub", "mul", "mad", "shl", "selp", "min", "max", "or")


class Instruction:
    def __init__(self, line, opcode, operands):
        self.line, self.opcode, self.operands = line, opcode, operands
        parts = opcode.split(".")
        self.name, self.types = parts[0], parts[1:]
        self.targets = []
        self.sources = []


def split_operands(text):
    """Operands at commas that are outside of brackets and braces."""
    found, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            found.append(text[start:i].strip())
            start = i + 1
    return found + [text[start:].strip()]


def parse(text):
    """Yields (kernel, threads in a block, instructions)."""
    kernel, threads, body = None, 1024, []
    for number, line in enumerate(text.splitlines(), 1):
        entry = re.match(r"\s*(?:\.visible\s+)?\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)", line)
        if entry:
            if body:
                yield kernel, threads, body
            kernel, threads, body = entry[1], 1024, []
        limit = re.match(r"\s*\.(?:reqntid|maxntid)\s+(\d+)", line)
        if limit:
            threads = int(limit[1])
        found = INSTRUCTION.match(line.split("//")[0])
        if not found or kernel is None:
            continue
        instruction = Instruction(number, found[1], split_operands(found[2]))
        stores = instruction.name in ("st", "red", "bra", "ret", "bar", "cp", "prefetch") or instruction.operands[0].startswith("[")
        if not stores:
            instruction.targets = REGISTER.findall(instruction.operands[0])
        rest = instruction.operands if stores else instruction.operands[1:]
        instruction.sources = [register for operand in rest for register in REGISTER.findall(operand)]
        body.append(instruction)
    if body:
        yield kernel, threads, body


class Kernel:
    def __init__(self, threads, body):
        self.threads, self.body = threads, body
        self.definitions, self.uses = {}, {}
        for instruction in body:
            for register in instruction.targets:
                self.definitions.setdefault(register, []).append(instruction)
            for register in instruction.sources:
                self.uses.setdefault(register, []).append(instruction)
        self.ranges = {}

    def range(self, operand):
        """The largest value that an operand can have as an unsigned number; more than MAX if nothing is known."""
        if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", operand):
            value = int(operand, 0)
            return value if value >= 0 else MAX + 1
        special = {"%tid.x": self.threads - 1, "%tid.y": 1023, "%tid.z": 63, "%laneid": 31, "%warpid": 63, "%ntid.x": 1024}
        if operand in special:
            return special[operand]
        if operand.startswith(("%ctaid", "%nctaid")):
            return 2**31 - 1
        if not REGISTER.fullmatch(operand) or operand not in self.definitions:
            return MAX + 1
        if operand not in self.ranges:
            self.ranges[operand] = MAX + 1  # of a value that depends on itself
            self.ranges[operand] = max(self.result(i) for i in self.definitions[operand])
        return self.ranges[operand]

    def result(self, i):
        """The largest value of an instruction's result, were it computed without overflow."""
        sources = [self.range(operand) for operand in i.operands[1:]]
        unknown = MAX + 1
        if i.name in ("mov", "cvt") and len(sources) == 1 and "f32" not in i.types and "f16" not in i.types:
            return sources[0]
        if i.name == "and" and "pred" not in i.types:
            return min(sources)
        if i.name in ("shr", "bfe", "div") and i.types[-1] in ("u32", "u64", "b32", "s32"):
            known = re.fullmatch(r"\d+", i.operands[2]) and "s32" not in i.types
            if i.name == "shr" and known:
                return min(sources[0], MAX) >> int(i.operands[2])
            if i.name == "div" and known:
                return min(sources[0], MAX) // max(int(i.operands[2]), 1)
            return sources[0]
        if i.name == "rem" and "s32" not in i.types:
            return min(sources[0], sources[1] - 1)
        if i.name == "min" and "s32" not in i.types:
            return min(sources)
        if unknown in sources or any(s > MAX for s in sources):
            return unknown
        if i.name == "rem":
            return min(sources[0], max(sources[1] - 1, 0))
        if i.name == "mul" and "lo" in i.types:
            return sources[0] * sources[1]
        if i.name == "mad" and "lo" in i.types:
            return sources[0] * sources[1] + sources[2]
        if i.name == "shl":
            return sources[0] << sources[1] if sources[1] < 64 else unknown
        if i.name in ("add", "or", "xor"):
            return sum(sources)
        if i.name == "max":
            return max(sources)
        if i.name == "selp":
            return max(sources[:2])
        return unknown

    def is_product(self, i):
        narrow = i.types and i.types[-1] in ("s32", "u32", "b32")
        return narrow and ((i.name in ("mul", "mad") and "lo" in i.types) or i.name == "shl")

    def is_stride_product(self, i, register):
        """Whether `i` multiplies the register by something larger than the size of an element, in 64 bits."""
        if i.name in ("mul", "mad") and ("wide" in i.types or i.types[-1] in ("s64", "u64")) and register in i.operands[1:3]:
            factors = [operand for operand in i.operands[1:3] if operand != register]
            return not all(re.fullmatch(r"[1248]", f) for f in factors)
        return i.name == "shl" and i.types[-1] == "b64" and self.range(i.operands[2]) > 3

    def reached_address(self, start):
        """The access whose global address the result of `start` is part of."""
        pending, seen = list(start.targets), set()
        while pending:
            register = pending.pop()
            if register in seen:
                continue
            seen.add(register)
            for use in self.uses.get(register, []):
                if self.addresses(use, register):
                    return use
                if use.name not in ARITHMETIC or "f32" in use.types:
                    continue
                if start.name == "shl" and self.is_stride_product(use, register):
                    continue
                pending += use.targets
        return None

    def addresses(self, i, register):
        """Whether the access `i` has a global address that contains the register."""
        if not GLOBAL.match(i.opcode) or ".param" in i.opcode:
            return False
        brackets = re.findall(r"\[([^\]]*)\]", ", ".join(i.operands))
        spaces = [t for t in i.types if t.startswith(("shared", "global", "local", "const"))]
        if i.name in ("ld", "st", "atom", "red"):
            spaces = spaces[:1]
        # A copy names the memory of each address; an access that names none may be to any.
        return any(register in REGISTER.findall(bracket) for bracket, space in zip(brackets, spaces or ["global"]) if space == "global")


def check(name, text):
    faults = 0
    for kernel, threads, body in parse(text):
        k = Kernel(threads, body)
        for i in body:
            if not k.is_product(i) or k.result(i) <= MAX:
                continue
            access = k.reached_address(i)
            if access:
                faults += 1
                print(f"{name}:{i.line}: in {kernel}: {i.opcode} {', '.join(i.operands)} may overflow, and line {access.line} uses it "
                      f"in a global address: {access.opcode} {', '.join(access.operands)}")
    return faults


if __name__ == "__main__":
    inputs = [(path, open(path).read()) for path in sys.argv[1:]] or [("<stdin>", sys.stdin.read())]
    sys.exit(1 if sum(check(name, text) for name, text in inputs) else 0)
