# RUN: %python %s
"""examples/xattention.mlir: antidiagonal estimates, and as many blocks as carry 90 % of them."""

from formulas import *

S, BLOCK, TAU = 16, 128, 0.9

# A chunk starts at a multiple of 128.
SHAPES = {
    "odd_length": (1, 197, 197),
    "chunk_of_a_longer_sequence": (1, 197, 581),
    "one_query": (1, 1, 385),
    "shorter_than_a_block": (1, 5, 5),
    "shorter_than_a_strip": (1, 9, 137),
    "batch_of_two": (2, 67, 195),
    "many_blocks": (1, 301, 1453),
    "no_keys": (1, 0, 0),
    "no_queries": (1, 0, 128),
    "no_batch": (0, 5, 133),
}


def block_scores(q, k):
    """The softmax of the reduced grid, summed over blocks."""
    (B, H, M, D), N = q.shape, k.shape[2]
    rows, columns, first = -(-M // S), -(-N // S), (N - M) // S
    whole = lambda x, n: np.pad(x, ((0, 0), (0, 0), (0, n - x.shape[2]), (0, 0)))
    q, k = whole(q, rows * S), per_head(whole(k, columns * S), H)
    cells = np.zeros((B, H, rows, columns))
    for r in range(S):
        cells += q[:, :, S - 1 - r :: S] @ k[:, :, r::S].swapaxes(2, 3) / (D**0.5 * S)
    p = softmax(cells, np.arange(columns) <= first + np.arange(rows)[:, None])
    s = np.zeros((B, H, -(-M // BLOCK), -(-N // BLOCK)))
    for x in range(rows):
        for y in range(columns):
            s[:, :, x * S // BLOCK, y * S // BLOCK] += p[:, :, x, y]
    return s


def xattention(B, M, N):
    x = Example("xattention", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    s = block_scores(q, k)
    diagonal, block = np.arange(s.shape[2])[:, None] + (N - M) // BLOCK, np.arange(s.shape[3])
    lists = x.run("xattention_select")
    cut = compare_lists("blocks", lists, s, block <= diagonal, (block == 0) | (block == diagonal), TAU)
    check(cut or N < 1000, "no row was cut by mass")

    keep = rows_of(tokens_of(lists, N, BLOCK), M, BLOCK) & causal(M, N)
    compare_output("o", x.run("xattention"), attention(q, k, v, keep), v)


if __name__ == "__main__":
    main(cases(xattention, SHAPES))
