#!/usr/bin/env python3
"""Writes seeded inputs of an example as .npy files and prints their names, ready for `ssa-run --in`.

    ssa-run examples/nsa.mlir --entry=nsa --in $(python3 examples/generate.py nsa /tmp/nsa) --out /tmp/nsa/o.npy

Keys and values change slowly along the sequence, as those of real models do, so that blocks differ. The numbers are exact in
the type of the argument, whose files hold f32 or i32.
"""

import argparse
import pathlib

import numpy as np

# Mantissa bits, smallest normal exponent and largest number of the narrow formats.
FORMATS = {"bf16": (7, -126, 2.0**128), "f8E4M3FN": (3, -6, 448.0)}


def round_to(x, fmt):
    """`x` rounded to the nearest number of a format, ties to even, as f32."""
    if fmt in FORMATS:
        bits, low, top = FORMATS[fmt]
        step = np.exp2(np.maximum(np.frexp(x)[1] - 1, low) - bits)
        x = np.clip(np.rint(x / step) * step, -top, top)
    return x.astype(np.float32)


def queries(heads, width, fmt="bf16", size=1.0):
    return lambda rng, b, m, n: round_to(size * rng.standard_normal((b, heads, m, width)), fmt)


def keys(heads, width, fmt="bf16", size=1.0, every=1):
    """One row for every so many tokens, each with a correlation of 0.9 to the one before."""

    def make(rng, b, m, n):
        x = rng.standard_normal((b, heads, n // every, width))
        for i in range(1, n // every):
            x[:, :, i] = 0.9 * x[:, :, i - 1] + np.sqrt(1 - 0.9**2) * x[:, :, i]
        return round_to(size * x, fmt)

    return make


def per_query(heads):
    return lambda rng, b, m, n: round_to(rng.standard_normal((b, heads, m)), "f32")


def scales(every=1):
    return lambda rng, b, m, n: round_to(rng.uniform(0.5, 1.5, (b, 1, n // every)), "f32")


def weights(*shape, fmt="f32"):
    return lambda rng, b, m, n: round_to(rng.standard_normal(shape), fmt)


def lists(heads, width, block):
    """Raw lists: any order, repeats, and numbers that name no block."""
    return lambda rng, b, m, n: rng.integers(-2, -(-n // block) + 2, (b, heads, m, width), dtype=np.int32)


def slopes(heads):
    return lambda rng, b, m, n: round_to(np.exp2(-8 * np.arange(1, heads + 1) / heads), "f32")


def few(make, rows):
    """So many rows, however long the sequence is."""
    return lambda rng, b, m, n: make(rng, b, rows, rows)


def blank(rng, b, m, n):
    """Of which only the number of rows counts."""
    return np.zeros((b, 1, n, 1), np.float32)


def cache(heads, width, columns):
    return lambda rng, b, m, n: round_to(rng.standard_normal((b, heads, 1, width, columns)), "bf16")


def cache_index(heads, width):
    """The first tokens; -1 where there are fewer."""
    return lambda rng, b, m, n: np.tile(np.where(np.arange(width) < n, np.arange(width), -1).astype(np.int32), (b, heads, 1, 1))


QKV = dict(q=queries(16, 128), k=keys(4, 128), v=keys(4, 128))
LATENT = dict(q=queries(16, 576), k=keys(1, 576))
INDEXER = dict(qi=queries(16, 128, "f8E4M3FN"), ki=keys(1, 128, "f8E4M3FN"), sc=scales(), w=per_query(16))

# The tensors of every example.
TENSORS = {
    "dsa": LATENT | INDEXER,
    "fading": QKV | dict(rates=slopes(16)),
    "hisa": LATENT | INDEXER,
    "infllm-v2": dict(q=queries(32, 128), k=keys(2, 128), v=keys(2, 128)),
    "kv-compress": QKV | dict(
        # Of later calls: three queries, the last of five tokens.
        ql=few(queries(16, 128), 3), kn=few(keys(4, 128), 5), vn=few(keys(4, 128), 5), prompt=blank,
        kc=cache(4, 512, 128), vc=cache(4, 512, 128), index=cache_index(4, 512),
    ),
    "low-rank": QKV | dict(wq=weights(16, 128, 16, fmt="bf16"), wk=weights(4, 128, 16, fmt="bf16"), list=lists(4, 96, 1)),
    "moba": QKV,
    "msa": QKV | dict(qi=queries(4, 128), ki=keys(1, 128)),
    "nsa": QKV | dict(g1=per_query(16), g2=per_query(16), g3=per_query(16)),
    "quest": QKV,
    "score-regions": dict(
        q=queries(16, 128, size=4.0), k=keys(4, 128, size=4.0), v=keys(4, 128), slopes=slopes(16), list=lists(4, 6, 32),
    ),
    "second-stream": dict(
        q=queries(16, 512), k=keys(1, 512), e=keys(1, 512, every=4), e128=keys(1, 512, every=128), qi=queries(16, 128, "f8E4M3FN"),
        ei=keys(1, 128, "f8E4M3FN", every=4), sc=scales(every=4), w=per_query(16), sinks=weights(16),
    ),
    "vertical-slash": QKV,
    "window-sink": QKV | dict(sinks=weights(16)),
    "xattention": QKV,
}

# The entries of every example with their arguments; the first is the whole pattern.
ENTRIES = {
    "dsa": {"dsa": "q k qi ki sc w", "dsa_select": "qi ki sc w"},
    "fading": {"fading": "q k v rates", "fading_select": "q k rates"},
    "hisa": {"hisa": "q k qi ki sc w", "hisa_select": "qi ki sc w"},
    "infllm-v2": {"infllm_v2": "q k v", "infllm_v2_select": "q k"},
    "kv-compress": {"compress": "q k v", "compress_select": "q k", "attend_compressed": "ql kc vc index prompt kn vn", "gather_by": "v index"},
    "low-rank": {"low_rank": "q k v wq wk", "low_rank_select": "q k wq wk", "low_rank_reuse": "q k v list"},
    "moba": {"moba": "q k v", "moba_select": "q k"},
    "msa": {"msa": "q k v qi ki", "msa_select": "qi ki"},
    "nsa": {"nsa": "q k v g1 g2 g3", "nsa_select": "q k"},
    "quest": {"quest": "q k v", "quest_gathered": "q k v", "quest_bound": "q k", "quest_select": "q k"},
    "score-regions": {"soft_cap": "q k v", "alibi": "q k v slopes", "alibi_at": "q k v slopes list"},
    "second-stream": {"csa": "q k e qi ei sc w sinks", "csa_select": "k qi ei sc w", "hca": "q k e128 sinks"},
    "vertical-slash": {"vertical_slash": "q k v", "vertical_slash_blocks": "q k v", "vertical_slash_select": "q k"},
    "window-sink": {"window_sink": "q k v", "window_sink_logit": "q k v sinks"},
    "xattention": {"xattention": "q k v", "xattention_select": "q k"},
}


def generate(example, b=1, m=197, n=325, seed=0):
    """The tensors of an example by name, for `b` sequences of `n` tokens of which the last `m` are queries."""
    rng = np.random.default_rng(seed)
    return {name: make(rng, b, m, n) for name, make in TENSORS[example].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("example", choices=sorted(TENSORS))
    parser.add_argument("folder", type=pathlib.Path, help="where the files go")
    parser.add_argument("--b", type=int, default=1, help="sequences (1)")
    parser.add_argument("--m", type=int, default=197, help="queries (197)")
    parser.add_argument("--n", type=int, help="keys (as many as queries)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--entry", help="whose arguments to print (the first function of the example)")
    options = parser.parse_args()
    entries = ENTRIES[options.example]
    entry = options.entry or next(iter(entries))
    if entry not in entries:
        parser.error(f"{options.example} has no entry {entry}; it has {', '.join(entries)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    n = options.m if options.n is None else options.n
    for name, x in generate(options.example, options.b, options.m, n, options.seed).items():
        np.save(options.folder / f"{name}.npy", x)
    print(",".join(str(options.folder / f"{name}.npy") for name in entries[entry].split()))


if __name__ == "__main__":
    main()
