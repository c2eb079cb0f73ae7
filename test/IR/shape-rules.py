# RUN: %python %s
"""Random sizes against the rules of the dialect's description, written a second time: what is right is accepted.

Every size is the right one, unknown, or off by one. Operands and results whose sizes are known may contradict each
other through others whose sizes are not.
"""

import os
import random
import re
import subprocess
import tempfile

COUNT = 600  # for each op
D = 8
rng = random.Random(1)


def tensor(dims):
    return f"tensor<{'x'.join('?' if d is None else str(d) for d in dims)}xf32>"


def selection(dims, key_block, query_block, sorted):
    sizes = "x".join("?" if d is None else str(d) for d in dims)
    return (
        f"!ssa.selection<{sizes}, key_block = {key_block}, query_block = {query_block}{', sorted' if sorted else ''}>"
    )


def near(size):
    """The size, nothing, or a wrong one."""
    kind = rng.random()
    if kind < 0.25:
        return None
    return max(size + rng.choice([-1, 1]), 0) if kind < 0.33 else size


def ceil_div(a, b):
    return None if a is None else -(-a // b)


def agree(*sizes):
    """Those that are known are equal."""
    return len({s for s in sizes if s is not None}) < 2


def known(*sizes):
    return next((s for s in sizes if s is not None), None)


def at_most(a, b):
    return a is None or b is None or a <= b


def lists_for(lists, rows):
    """As many lists as rows, or one that serves all."""
    return lists == 1 or agree(lists, rows)


def num_blocks(tokens, size, stride, offset):
    if tokens is None:
        return None
    if size == stride:
        return ceil_div(tokens - offset, stride) if tokens else 0
    return max((tokens - offset - size) // stride + 1, 0)


def sizes():
    kv_heads, group = rng.choice([1, 2, 3]), rng.choice([1, 2, 4])
    heads = kv_heads * group
    return (
        rng.choice([0, 1, 3]),
        rng.choice([0, 1, 5, 8]),
        rng.choice([0, 1, 9, 16]),
        heads,
        kv_heads,
        rng.choice([1, kv_heads, heads]),
    )


def module(text, operands, results):
    """A module of one op, whose operands are `{0}`, `{1}`, ..; those that are None are not given."""
    given = [(i, t) for i, t in enumerate(operands) if t]
    head = ", ".join(f"%a{i}: {t}" for i, t in given)
    op = text.format(*(f"%a{i}" for i in range(len(operands))))
    types = ", ".join(t for _, t in given)
    return f"func.func @main({head}) {{\n  %r:{len(results)} = {op} : {types} -> {', '.join(results)}\n  return\n}}\n"


def sparse_attend():
    B, M, N, heads, kv_heads, lists = sizes()
    query_block = rng.choice([1, 2, 4])
    q, k, v = [near(B), heads, near(M), D], [near(B), kv_heads, near(N), D], [near(B), kv_heads, near(N), 4]
    o, lse = [near(B), heads, near(M), 4], [near(B), heads, near(M)]
    s = [near(B), rng.choice([lists, lists, lists, 5]), rng.choice([near(ceil_div(M, query_block)), 1]), 3]
    right = (
        agree(q[0], k[0], v[0], s[0], o[0], lse[0])
        and agree(k[2], v[2])
        and agree(q[2], o[2], lse[2])
        and heads % s[1] == 0
        and lists_for(s[2], ceil_div(known(q[2], o[2], lse[2]), query_block))
    )
    operands = [tensor(q), tensor(k), tensor(v), selection(s, rng.choice([1, 4]), query_block, False)]
    return module("ssa.sparse_attend {0}, {1}, {2} at {3}", operands, [tensor(o), tensor(lse)]), right


def topk():
    B, M, N, heads, kv_heads, lists = sizes()
    query_block, key_block = rng.choice([1, 2, 4]), rng.choice([1, 2, 4])
    K, init, local = rng.choice([0, 1, 3, 8]), rng.choice([0, 0, 1, 2]), rng.choice([0, 0, 1, 2])
    rows = ceil_div(M, query_block)
    s, k, q = (
        [near(B), lists, near(rows), near(rng.randint(0, ceil_div(N, key_block)))],
        [near(B), 1, near(N), 1],
        [near(B), heads, near(M), D],
    )
    r = [near(B), lists, near(rows), K]
    has_queries = rng.random() < 0.8
    right = agree(s[0], k[0], r[0], q[0] if has_queries else None) and agree(s[2], r[2])
    right &= agree(known(s[2], r[2]), ceil_div(q[2], query_block)) if has_queries else query_block == 1
    right &= at_most(s[3], ceil_div(k[2], key_block))
    right &= init + local == 0 or init + local + ceil_div(query_block - 1, key_block) <= K
    text = (
        "ssa.topk {0} of {1}"
        + (" for {2}" if has_queries else "")
        + f" {{{{init_blocks = {init}, local_blocks = {local}}}}}"
    )
    operands = [tensor(s), tensor(k), tensor(q) if has_queries else None]
    return module(text, operands, [selection(r, key_block, query_block, True)]), right


def route():
    B, M, N, heads, kv_heads, lists = sizes()
    size = rng.choice([1, 2, 4])
    stride, offset = rng.choice([size, size, size, max(size // 2, 1)]), rng.choice([0, 0, 1 - size])
    has_tokens, masked, reduced, within = (rng.random() < p for p in (0.8, 0.5, 0.6, 0.4))
    lists = lists if reduced else heads
    query_block, key_block, K = rng.choice([1, 2]), size * rng.choice([1, 2]), rng.choice([0, 2, 3])
    slots = K * (key_block // size)
    q, k = [near(B), heads, near(M), D], [
        near(B),
        kv_heads,
        near(rng.randint(0, num_blocks(N, size, stride, offset))),
        D,
    ]
    n, c = [near(B), 1, near(N), 1], [near(B), lists, rng.choice([near(ceil_div(M, query_block)), 1]), K]
    s = [near(B), lists, near(M), near(slots if within else k[2] or 0)]
    right = agree(q[0], k[0], n[0] if has_tokens else None, c[0] if within else None, s[0]) and agree(q[2], s[2])
    if within:
        right &= (
            size == stride
            and offset == 0
            and agree(s[3], slots)
            and lists_for(c[2], ceil_div(known(q[2], s[2]), query_block))
        )
    else:
        right &= agree(k[2], s[3])
    if has_tokens:
        right &= at_most(k[2] if within else known(k[2], s[3]), num_blocks(n[2], size, stride, offset))
    else:
        right &= size == 1 or not masked
    attributes = [f"blocks = #ssa.blocks<{size}, stride = {stride}, offset = {offset}>"]
    attributes += ["mask = #ssa.mask<causal>"] * masked + ["reduce = sum"] * reduced
    text = "ssa.route {0}, {1}" + " of {2}" * has_tokens + " within {3}" * within + f" {{{{{', '.join(attributes)}}}}}"
    operands = [
        tensor(q),
        tensor(k),
        tensor(n) if has_tokens else None,
        selection(c, key_block, query_block, True) if within else None,
    ]
    return module(text, operands, [tensor(s)]), right


def pool():
    B, _, N, heads, _, _ = sizes()
    size = rng.choice([1, 2, 4])
    stride, offset = rng.choice([size, max(size // 2, 1)]), rng.choice([0, 0, 1 - size])
    has_scales = rng.random() < 0.5
    k, sc, o = (
        [near(B), heads, near(N), D],
        [near(B), heads, near(N)],
        [near(B), heads, near(num_blocks(N, size, stride, offset)), D],
    )
    tokens = (k[2], sc[2]) if has_scales else (k[2],)
    right = agree(k[0], o[0], sc[0] if has_scales else None) and agree(*tokens)
    right &= agree(o[2], num_blocks(known(*tokens), size, stride, offset))
    text = (
        "ssa.pool mean {0}"
        + " scales {1}" * has_scales
        + f" {{{{blocks = #ssa.blocks<{size}, stride = {stride}, offset = {offset}>}}}}"
    )
    return module(text, [tensor(k), tensor(sc) if has_scales else None], [tensor(o)]), right


def check(op):
    """How many random forms of the op are right, and those of which the verifier thinks otherwise."""
    cases = [op() for _ in range(COUNT)]
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("// -----\n".join(text for text, _ in cases))
        file.flush()
        done = subprocess.run(
            [os.environ["SSA_OPT"], "--split-input-file", file.name], capture_output=True, text=True, timeout=120
        )
    length = cases[0][0].count("\n") + 1
    errors = {
        (int(line) - 1) // length: message
        for line, message in re.findall(r"\.mlir:(\d+):\d+: error: (.*)", done.stderr)
    }
    wrong = [
        f"{'refused' if right else 'accepted'}, {errors.get(i, '')}\n{text}"
        for i, (text, right) in enumerate(cases)
        if right == (i in errors)
    ]
    return sum(right for _, right in cases), wrong


failures = []
for op in (sparse_attend, topk, route, pool):
    right, wrong = check(op)
    print(f"{op.__name__}: {COUNT} forms, {right} of them right, {len(wrong)} mistaken")
    assert COUNT // 5 < right < COUNT * 4 // 5, "too few forms are right, or wrong, to tell anything"
    failures += wrong
for failure in failures[:5]:
    print(failure)
assert not failures
