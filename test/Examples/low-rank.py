# RUN: %python %s
"""examples/low-rank.mlir: low-rank routing in two levels against its definition."""

from formulas import *

BLOCK, QUERIES, GROUPS = 64, 16, 4
BLOCKS, SINK_BLOCKS, LOCAL_BLOCKS = 8, 1, 2
TOKENS, SINKS, LOCAL = 96, 4, 16


def low_rank(B, M, N):
    x = Example("low-rank", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, i = positions(M, N)[:, None], np.arange(N)

    # The router: a group's score is that of its heads together.
    a = round_to(np.einsum("bhtd,hdr->bhtr", q, x["wq"]), "bf16")
    b = round_to(np.einsum("bgid,gdr->bgir", k, x["wk"]), "bf16")
    group = lambda s: s.reshape((B, GROUPS, 4) + s.shape[2:]).sum(axis=2)

    # Level 1: a block that any query of 16 sees may be taken; their own blocks and the ones before must be.
    mean = round_to(means(a, QUERIES), "bf16")
    s1 = group(logits(mean, round_to(means(b, BLOCK), "bf16"), 1.0))
    rows, block = mean.shape[2], np.arange(-(-N // BLOCK))
    may, must = np.zeros((rows, len(block)), bool), np.zeros((rows, len(block)), bool)
    for row in range(rows):
        for p in positions(M, N)[row * QUERIES : (row + 1) * QUERIES]:
            may[row] |= block * BLOCK <= p
            must[row] |= (block <= p // BLOCK) & (p // BLOCK - block < LOCAL_BLOCKS)
        must[row] |= block < SINK_BLOCKS
    blocks, tokens = x.run("low_rank_select")
    cut1 = compare_lists("blocks", blocks, s1, may, must)

    # Level 2, among the visible tokens of the blocks that were taken.
    candidates = rows_of(tokens_of(blocks, N, BLOCK), M, QUERIES) & (i <= t)
    s2 = group(logits(a, b, 1.0))
    cut2 = compare_lists("tokens", tokens, s2, candidates, (i < SINKS) | (i <= t) & (i > t - LOCAL))
    check(N < 300 or cut2, "no row of tokens was cut by score")
    check(N < 1000 or cut1, "no row of blocks was cut by score")

    attend = lambda lists: attention(q, k, v, per_head(tokens_of(lists, N), 16) & (i <= t))
    compare_output("o", x.run("low_rank"), attend(tokens), v)

    # A list from elsewhere: in any order, with repeats and with numbers that name no token.
    compare_output("reuse", x.run("low_rank_reuse"), attend(x["list"]), v)


if __name__ == "__main__":
    main(cases(low_rank, more_blocks_than_listed=(1, 37, 1003)))
