# RUN: %python %s
"""examples/hisa.mlir: DSA's indexer on blocks, then on their tokens."""

from dsa import indexer, latent_attention
from formulas import *

BLOCK, BLOCKS = 128, 8


def hisa(B, M, N):
    x = Example("hisa", B, M, N)
    t, i, block = positions(M, N)[:, None], np.arange(N), np.arange(-(-N // BLOCK))

    # Means of the scaled keys, stored again as fp8 with one scale per block.
    mean = round_to(means(x["ki"] * x["sc"][..., None], BLOCK), "f32")
    scale = round_to(np.abs(mean).max(axis=3, initial=0) / 448, "f32")
    s1 = indexer(x, round_to(mean / scale[..., None], "f8E4M3FN"), scale)
    blocks, tokens = x.run("hisa_select")
    own = t // BLOCK
    cut = compare_lists("blocks", blocks, s1, block <= own, (block == 0) | (block == own))
    check(cut or N < 1300, "no row of blocks was cut by score")

    s2 = indexer(x, x["ki"], x["sc"])
    cut = compare_lists("tokens", tokens, s2, tokens_of(blocks, N, BLOCK) & (i <= t))
    check(cut or N < 300, "no row of tokens was cut by score")
    compare_output("o", x.run("hisa"), latent_attention(x, tokens), x["k"][..., :512])

    if len(block) <= BLOCKS:
        y = Example("dsa", B, M, N)
        compare_exact("lists of DSA", tokens, y.run("dsa_select"))


if __name__ == "__main__":
    main(cases(hisa, more_blocks_than_listed=(1, 23, 1399)))
