# RUN: %python %s
"""tcgen05 against the tables of the PTX ISA: where each shape of ld and st puts what, and products of all kinds, layouts and places of operands.

A kernel copies an image of shared memory from its argument, issues the instructions of a case, and gives back the columns of tensor memory. The
image and what must come out are computed here from the text of the ISA.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

SIM = os.path.join(os.environ.get("SSA_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"), "ssa-sim")
COLUMNS = 512

# --- Kernels -------------------------------------------------------------------------------------------------------------

PROLOGUE = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 image)
{
.reg .pred %p<8>;
.reg .b16 %h<4>;
.reg .b32 %r<32>, %v<132>;
.reg .b64 %d<32>;
.shared .align 1024 .b8 tile[BYTES];
.shared .align 8 .b8 done[8];
.shared .align 4 .b8 slot[4];
mov.u32 %r0, %tid.x;
shr.u32 %r1, %r0, 5;
setp.ne.u32 %p0, %r1, 0;
@%p0 bra COPY;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
COPY:
setp.ne.u32 %p1, %r0, 0;
@!%p1 mbarrier.init.shared::cta.b64 [done], 1;
ld.param.b64 %d0, [out];
ld.param.b64 %d1, [image];
mov.b64 %d2, tile;
mul.wide.u32 %d3, %r0, 16;
add.s64 %d4, %d1, %d3;
add.s64 %d5, %d2, %d3;
mov.b32 %r2, %r0;
STEP:
setp.ge.u32 %p2, %r2, CHUNKS;
@%p2 bra READY;
ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%d4];
st.shared.v4.b32 [%d5], {%v0, %v1, %v2, %v3};
add.s64 %d4, %d4, 2048;
add.s64 %d5, %d5, 2048;
add.s32 %r2, %r2, 128;
bra STEP;
READY:
fence.proxy.async.shared::cta;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r3, [slot];
and.b32 %r4, %r1, 3;
shl.b32 %r5, %r4, 21;
add.s32 %r6, %r3, %r5;
cvt.u32.u64 %r7, %d2;
shr.u32 %r8, %r7, 4;
cvt.u64.u32 %d6, %r8;
"""
ORDER = "tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
EPILOGUE = """
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p0 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;
END:
ret;
}
"""


def registers(count, first=0):
    return "{" + ", ".join(f"%v{first + i}" for i in range(count)) + "}"


def give_back(columns):
    """Every lane stores its columns."""
    lines = [f"mul.wide.u32 %d7, %r0, {4 * columns};", "add.s64 %d8, %d0, %d7;"]
    for first in range(0, columns, 32):
        count = min(32, columns - first)
        assert count & (count - 1) == 0
        lines += [f"tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {registers(count)}, [%r6+{first}];", "tcgen05.wait::ld.sync.aligned;"]
        lines += [f"st.global.b32 [%d8+{4 * (first + i)}], %v{i};" for i in range(count)]
    return "\n".join(lines) + "\n"


def issue(lines):
    """One thread issues tcgen05 work and all wait for it."""
    return ("@%p1 bra ISSUED;\n" + "\n".join(lines) + "\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\nISSUED:\nWAIT:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;\n@!%p3 bra WAIT;\ntcgen05.fence::after_thread_sync;\n")


def for_pairs(text, image_bytes, result_bytes):
    """The same kernel for clusters of two blocks: each has its own image and results, block 0 issues the work, both are told."""
    text = text.replace("cta_group::1", "cta_group::2").replace("\n{\n.reg .pred", "\n.reqnctapercluster 2\n{\n.reg .pred", 1)
    text = text.replace("bar.sync 0;", "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;")
    text = text.replace("ld.param.b64 %d1, [image];", f"ld.param.b64 %d1, [image];\nmov.u32 %r20, %cluster_ctarank;\nmul.wide.u32 %d30, %r20, {image_bytes};\nadd.s64 %d1, %d1, %d30;\n"
                        f"mul.wide.u32 %d30, %r20, {result_bytes};\nadd.s64 %d0, %d0, %d30;")
    text = text.replace("@%p1 bra ISSUED;", "setp.ne.u32 %p6, %r20, 0;\nor.pred %p6, %p6, %p1;\n@%p6 bra ISSUED;\nmov.b16 %h0, 3;")
    return text.replace("one.shared::cluster.b64 [done];", "one.shared::cluster.multicast::cluster.b64 [done], %h0;")


def run(name, body, image, count, blocks=1):
    """Runs a kernel with an image of shared memory, `blocks` of them one after the other; returns 32-bit words."""
    image = np.frombuffer(bytes(image) + bytes(-len(image) % (16 * blocks)), np.uint8)
    per_block = len(image) // blocks
    text = PROLOGUE.replace("BYTES", str(max(per_block, 16))).replace("CHUNKS", str(per_block // 16)) + body + EPILOGUE
    if blocks == 2:
        text = for_pairs(text, per_block, 4 * count // 2)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "k.ptx").write_text(text)
        image.tofile(f"{folder}/image")
        command = [SIM, f"{folder}/k.ptx", "--block=128", f"--grid={blocks}", f"--arg=out=u32[{count}]", f"--arg=image=u8[{len(image)}]:@{folder}/image", f"--save=out={folder}/out"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        return np.fromfile(f"{folder}/out", np.uint32)


# --- ld and st -----------------------------------------------------------------------------------------------------------


def places(shape, number, thread, split=0):
    """Lane and column, from the first of the access, of a register of a thread."""
    return {"32x32b": (thread, number),
            "16x64b": (thread // 4 + 8 * (thread % 2), 2 * number + thread // 2 % 2),
            "16x128b": (thread // 4 + 8 * (number % 2), number // 2 * 4 + thread % 4),
            "16x256b": (thread // 4 + 8 * (number // 2 % 2), number // 4 * 8 + thread % 4 * 2 + number % 2),
            "16x32bx2": (thread % 16, number + thread // 16 * split)}[shape]


def test_transfers():
    """What one shape stores, 32x32b reads, and the other way round."""
    per_one = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
    tested = 0
    for shape, one in per_one.items():
        for times in (1, 2, 8, 16 if shape == "16x256b" else 32):
            for half in ((0,) if shape == "32x32b" else (0, 16)):
                count, split = one * times, 64 if shape == "16x32bx2" else 0
                extra = f", {split}" if split else ""
                # Values say thread and register; tensor memory is cleared first so that nothing is undefined.
                clear = "mov.b32 %v0, 0;\n" + "".join(f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+{c}], {{%v0}};\n" for c in range(128)) + "tcgen05.wait::st.sync.aligned;\n"
                fill = "".join(f"shl.b32 %v{i}, %r0, 8;\nadd.s32 %v{i}, %v{i}, {i};\n" for i in range(count))
                where = f"add.s32 %r9, %r6, {half << 16};\n"
                body = clear + fill + where + f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r9]{extra}, {registers(count)};\ntcgen05.wait::st.sync.aligned;\n" + give_back(128)
                got = run(f"st {shape} x{times}", body, b"", 128 * 128).reshape(128, 128)
                expected = np.zeros((128, 128), np.uint32)
                for thread in range(128):
                    for i in range(count):
                        lane, column = places(shape, i, thread % 32, split)
                        expected[thread // 32 * 32 + half + lane, column] = thread << 8 | i
                if not np.array_equal(got, expected):
                    sys.exit(f"tcgen05.st.{shape}.x{times} at lane {half} is wrong")
                # 32x32b stores lane and column; the shape loads.
                fill = "".join(f"shl.b32 %v0, %r0, 8;\nadd.s32 %v0, %v0, {c};\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+{c}], {{%v0}};\n" for c in range(128)) + "tcgen05.wait::st.sync.aligned;\n"
                back = f"mul.wide.u32 %d7, %r0, {4 * count};\nadd.s64 %d8, %d0, %d7;\n" + "".join(f"st.global.b32 [%d8+{4 * i}], %v{i};\n" for i in range(count))
                body = fill + where + f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {registers(count)}, [%r9]{extra};\ntcgen05.wait::ld.sync.aligned;\n" + back
                got = run(f"ld {shape} x{times}", body, b"", 128 * count).reshape(128, count)
                for thread in range(128):
                    for i in range(count):
                        lane, column = places(shape, i, thread % 32, split)
                        if got[thread, i] != (thread // 32 * 32 + half + lane) << 8 | column:
                            sys.exit(f"tcgen05.ld.{shape}.x{times} at lane {half} is wrong in thread {thread}, register {i}")
                tested += 2
    # Packed: 16 bits of each of two columns.
    body = "mov.b32 %v0, 0x00020001;\nmov.b32 %v1, 0x00040003;\ntcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r6], {%v0, %v1};\ntcgen05.wait::st.sync.aligned;\n"
    if not np.array_equal(run("unpack", body + give_back(4), b"", 512).reshape(128, 4), np.tile([1, 2, 3, 4], (128, 1))):
        sys.exit("unpack::16b is wrong")
    body += "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%v2, %v3}, [%r6];\ntcgen05.wait::ld.sync.aligned;\nmul.wide.u32 %d7, %r0, 8;\nadd.s64 %d8, %d0, %d7;\nst.global.v2.b32 [%d8], {%v2, %v3};\n"
    if not np.array_equal(run("pack", body, b"", 256).reshape(128, 2), np.tile([0x00020001, 0x00040003], (128, 1))):
        sys.exit("pack::16b is wrong")
    return tested + 2


# --- Products ------------------------------------------------------------------------------------------------------------

# Kind and codes of types: bytes of an element, and bits of small numbers.
TYPES = {"f16": ("f16", 0, 2, lambda x: x.astype(np.float16).view(np.uint16)),
         "bf16": ("f16", 1, 2, lambda x: (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)),
         "tf32": ("tf32", 2, 4, lambda x: x.astype(np.float32).view(np.uint32)),
         "e4m3": ("f8f6f4", 0, 1, lambda x: small_float(x, 7, 3)),
         "e5m2": ("f8f6f4", 1, 1, lambda x: small_float(x, 15, 2))}
SWIZZLES = {16: 0, 128: 2, 64: 4, 32: 6}  # row bytes: mode


def small_float(x, bias, mantissa):
    """Integers up to 8 in 8 bits."""
    table = {0: 0}
    for value in range(1, 9):
        exponent = value.bit_length() - 1
        rest = (value << mantissa >> exponent) - (1 << mantissa)
        table[value] = (exponent + bias) << mantissa | rest
        table[-value] = table[value] | 0x80
    return np.vectorize(table.get)(x.astype(int)).astype(np.uint8)


def place(matrix, element_bytes, row_bytes, is_transposed):
    """A matrix (outer x k) as shared memory holds it, with strides: the canonical layouts of the ISA. Rows of 8 (K-major) or columns (MN-major)
    make an atom; 16-byte pieces of it are exchanged by the swizzle."""
    outer, k = matrix.shape
    per_row = row_bytes // element_bytes
    if is_transposed:
        atoms_outer, atoms_k = -(-outer // per_row), k // 8
        matrix = np.pad(matrix, ((0, atoms_outer * per_row - outer), (0, 0)))
    else:
        atoms_outer, atoms_k = outer // 8, -(-k // per_row)
        matrix = np.pad(matrix, ((0, 0), (0, atoms_k * per_row - k)))
    atom = 8 * row_bytes
    image = np.zeros(atoms_outer * atoms_k * atom, np.uint8)
    step_outer, step_k = atom * atoms_k, atom
    for o in range(outer):
        for i in range(k):
            if is_transposed:
                at = o // per_row * step_outer + i // 8 * step_k + i % 8 * row_bytes + o % per_row * element_bytes
            else:
                at = o // 8 * step_outer + i // per_row * step_k + o % 8 * row_bytes + i % per_row * element_bytes
            at ^= (at >> 7 & (row_bytes // 16 - 1)) << 4
            image[at : at + element_bytes] = np.frombuffer(matrix[o, i].tobytes(), np.uint8)
    if is_transposed:
        leading, stride = (step_k, step_outer) if row_bytes == 16 else (step_outer, step_k)
    else:
        leading, stride = step_k, step_outer
    return image.tobytes(), leading, stride


def descriptor(start, leading, stride, row_bytes):
    """All but the address of `tile`, which the kernel adds."""
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | SWIZZLES[row_bytes] << 61


def instruction_descriptor(m, n, code_a, code_b, is_half=False, **bits):
    value = (0 if is_half else 1) << 4 | code_a << 7 | code_b << 10 | n >> 3 << 17 | m >> 4 << 24
    for name, at in (("negate_a", 13), ("negate_b", 14), ("transpose_a", 15), ("transpose_b", 16)):
        value |= bits.get(name, False) << at
    return value


def test_product(rng, m, n, type_a, type_b, rows_a=128, rows_b=128, tensor_a=False, is_half=False, steps=2, scale=None, masked=False, **bits):
    """D = A * B over `steps` instructions, the first of which does not read D; with `scale` one more that reads D scaled."""
    kind, code_a, bytes_a, bits_a = TYPES[type_a]
    _, code_b, bytes_b, bits_b = TYPES[type_b]
    k = 32 // bytes_a
    image, lines, total = b"", [], np.zeros((m, n))
    idesc = instruction_descriptor(m, n, code_a, code_b, is_half, **bits)
    lines += [f"mov.b32 %r10, {idesc};", "mov.pred %p4, 0;", "mov.pred %p5, -1;"]
    prepare = ""
    for step in range(steps):
        a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (n, k))
        product = a @ b.T * (-1 if bits.get("negate_a") else 1) * (-1 if bits.get("negate_b") else 1)
        total = product + (total * 0.5**scale if scale is not None and step else total)
        operands = []
        if tensor_a:  # lanes of A are those of D; a column has 32 bits of k
            words = np.frombuffer(bits_a(a).tobytes(), np.uint32).reshape(m, 8)
            lanes = np.zeros((128, 8), np.uint32)
            for row in range(m):
                lanes[row if m == 128 else row // 16 * 32 + row % 16] = words[row]
            image += bytes(-len(image) % 1024)
            prepare += f"mul.wide.u32 %d9, %r0, 32;\nadd.s64 %d10, %d2, %d9;\n"
            prepare += "".join(f"ld.shared.b32 %v{i}, [%d10+{len(image) + 4 * i}];\n" for i in range(8))
            prepare += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r6+{256 + 8 * step}], {registers(8)};\ntcgen05.wait::st.sync.aligned;\n"
            image += lanes.tobytes()
            operands.append(f"[%r3+{256 + 8 * step}]")
        for letter, matrix, size, rows, transposed in (("a", bits_a(a), bytes_a, rows_a, bits.get("transpose_a")), ("b", bits_b(b), bytes_b, rows_b, bits.get("transpose_b"))):
            if letter == "a" and tensor_a:
                continue
            image += bytes(-len(image) % 1024)
            part, leading, stride = place(matrix, size, rows, transposed)
            register = "%d20" if letter == "a" else "%d21"
            lines += [f"mov.b64 {register}, {descriptor(len(image), leading, stride, rows)};", f"add.s64 {register}, {register}, %d6;"]
            image += part
            operands.append(register)
        masks = ", {%r11, %r12, %r13, %r14}" if masked else ""
        if masked:
            lines += [f"mov.b32 %r{11 + i}, {value};" for i, value in enumerate((0x1, 0xffff0000, 0, 0x80000000))]
        scaling = f", {scale}" if scale is not None else ""
        lines.append(f"tcgen05.mma.cta_group::1.kind::{kind} [%r3], {', '.join(operands)}, %r10{masks}, %p{5 if step else 4}{scaling};")
    width = 1 << (n - 1).bit_length()
    clear = "mov.b32 %v0, 0;\n" + "".join(f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+{c}], {{%v0}};\n" for c in range(width)) + "tcgen05.wait::st.sync.aligned;\n"
    name = f"{m}x{n}x{k} {type_a} {type_b} {'tensor' if tensor_a else rows_a} {rows_b} {bits}"
    got = run(name, clear + prepare + ORDER + issue(lines) + give_back(width), image, 128 * width).reshape(128, width)[:, :n]
    got = got.astype(np.uint16).view(np.float16).astype(np.float64) if is_half else got.view(np.float32).astype(np.float64)
    expected = np.zeros((128, n))
    for row in range(m):
        expected[row if m == 128 else row // 16 * 32 + row % 16] = total[row]
    if masked:
        for lane in [0, *range(48, 64), 127]:
            expected[lane] = 0
    if not np.array_equal(got, expected):
        bad = np.argwhere(got != expected)
        sys.exit(f"{name}: {len(bad)} of {got.size} elements are wrong, first {bad[0]}: {got[tuple(bad[0])]}, expected {expected[tuple(bad[0])]}")


def test_products():
    rng, tested = np.random.default_rng(7), 0
    cases = [dict(m=m, n=n, type_a=t, type_b=t) for t in TYPES for m in (64, 128) for n in (8, 40)]
    cases += [dict(m=128, n=256, type_a="bf16", type_b="bf16"), dict(m=64, n=24, type_a="e4m3", type_b="e5m2")]
    for rows in (16, 32, 64, 128):
        for transpose_a in (False, True):
            for transpose_b in (False, True):
                for t in ("bf16", "e4m3"):
                    cases.append(dict(m=64 if rows == 64 else 128, n=128, type_a=t, type_b=t, rows_a=rows, rows_b=rows, transpose_a=transpose_a, transpose_b=transpose_b, steps=1))
    cases += [dict(m=m, n=32, type_a=t, type_b=t, tensor_a=True) for t in TYPES for m in (64, 128)]
    cases += [dict(m=128, n=16, type_a="f16", type_b="f16", is_half=True), dict(m=128, n=16, type_a="f16", type_b="f16", scale=3), dict(m=128, n=16, type_a="f16", type_b="f16", masked=True)]
    cases += [dict(m=128, n=16, type_a="tf32", type_b="tf32", negate_a=True), dict(m=128, n=16, type_a="bf16", type_b="f16", negate_b=True)]
    for case in cases:
        test_product(rng, **case)
        tested += 1
    return tested


def test_pair(rng, m, n, name, tensor_a=False, masked=False):
    """Each block has half of the rows of A and half of the columns of B; the results of 64 rows are folded into all lanes."""
    kind, code, size, bits = TYPES[name]
    k, half = 32 // size, m // 2
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (n, k))
    images = []
    for rank in range(2):
        image, leading_a, stride_a = place(bits(a[rank * half : rank * half + half]), size, 128, False)
        if tensor_a:
            image = bits(a[rank * half : rank * half + half]).tobytes()
        start_b = -(-len(image) // 1024) * 1024
        part, leading, stride = place(bits(b[rank * n // 2 : (rank + 1) * n // 2]), size, 64, False)
        images.append(image + bytes(start_b - len(image)) + part)
    lines = [f"mov.b32 %r10, {instruction_descriptor(m, n, code, code)};", "mov.pred %p4, 0;", f"mov.b64 %d20, {descriptor(0, leading_a, stride_a, 128)};", "add.s64 %d20, %d20, %d6;",
             f"mov.b64 %d21, {descriptor(start_b, leading, stride, 64)};", "add.s64 %d21, %d21, %d6;"]
    masks = ", {" + ", ".join(["%r11"] * 4 + ["%r12"] * 4) + "}" if masked else ""
    lines += ["mov.b32 %r11, 1;", "mov.b32 %r12, 0x80000000;"] if masked else []
    lines.append(f"tcgen05.mma.cta_group::1.kind::{kind} [%r3], {'[%r3+256]' if tensor_a else '%d20'}, %d21, %r10{masks}, %p4;")
    columns = n if m == 256 else n // 2
    prepare = "mov.b32 %v0, 0;\n" + "".join(f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+{c}], {{%v0}};\n" for c in range(columns)) + "tcgen05.wait::st.sync.aligned;\n"
    if tensor_a:
        prepare += "mul.wide.u32 %d9, %r0, 32;\nadd.s64 %d10, %d2, %d9;\n" + "".join(f"ld.shared.b32 %v{i}, [%d10+{4 * i}];\n" for i in range(8))
        prepare += f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%r6+256], {registers(8)};\ntcgen05.wait::st.sync.aligned;\n"
    got = run(f"pair {m}x{n} {name}", prepare + ORDER + issue(lines) + give_back(columns), b"".join(images), 256 * columns, blocks=2).view(np.float32).reshape(2, 128, columns)
    total = (a @ b.T).astype(np.float32)
    if m == 256:
        expected = total.reshape(2, 128, n).copy()
    else:
        expected = np.concatenate([total.reshape(2, 64, n)[:, :, : n // 2], total.reshape(2, 64, n)[:, :, n // 2 :]], axis=1)
    if masked:
        expected[0, ::32], expected[1, 31::32] = 0, 0
    if not np.array_equal(got, expected):
        sys.exit(f"a product of {m} x {n} of a pair ({name}) is wrong")


def test_pairs():
    rng, tested = np.random.default_rng(5), 0
    for case in [(m, n, t) for m in (128, 256) for n in (32, 64) for t in TYPES] + [(256, 32, t, True) for t in TYPES] + [(256, 32, "bf16", False, True), (128, 32, "bf16", False, True)]:
        test_pair(rng, *case)
        tested += 1
    return tested


# --- cp ------------------------------------------------------------------------------------------------------------------


def test_copies():
    """The source is K-major without swizzle, 8 rows of 16 bytes an atom."""
    rng, tested = np.random.default_rng(3), 0
    for shape, lanes, columns, targets in (("128x256b", 128, 8, (0, 1, 2, 3)), ("128x128b", 128, 4, (0, 1, 2, 3)), ("64x128b.warpx2::02_13", 64, 4, (0, 1, 0, 1)),
                                           ("64x128b.warpx2::01_23", 64, 4, (0, 0, 1, 1)), ("32x128b.warpx4", 32, 4, (0, 0, 0, 0)), ("4x256b", 4, 8, None)):
        words = rng.integers(0, 1 << 32, (max(lanes, 8), columns), dtype=np.uint32)
        image, leading, stride = place(words, 4, 16, False)
        lines = [f"mov.b64 %d20, {descriptor(0, leading, stride, 16)};", "add.s64 %d20, %d20, %d6;", f"tcgen05.cp.cta_group::1.{shape} [%r3], %d20;"]
        clear = "mov.b32 %v0, 0;\n" + "".join(f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+{c}], {{%v0}};\n" for c in range(8)) + "tcgen05.wait::st.sync.aligned;\n"
        got = run(shape, clear + ORDER + issue(lines) + give_back(8), image, 128 * 8).reshape(128, 8)
        expected = np.zeros((128, 8), np.uint32)
        for target in range(4):
            if targets:
                expected[32 * target : 32 * target + 32, :columns] = words[32 * targets[target] : 32 * targets[target] + 32]
            else:
                expected[32 * target : 32 * target + 4] = words[:4]
        if not np.array_equal(got, expected):
            sys.exit(f"tcgen05.cp.{shape} is wrong")
        tested += 1
    return tested


if __name__ == "__main__":
    counts = test_transfers(), test_products(), test_pairs(), test_copies()
    print(f"{counts[0]} loads and stores, {counts[1]} products, {counts[2]} products of pairs and {counts[3]} copies of tensor memory are right")
