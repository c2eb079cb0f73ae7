# RUN: %python %s
"""examples/vertical-slash.mlir: columns and diagonals found from the last queries, in the ideal form and in that of kernels."""

from formulas import *

LAST, TILE = 64, 64
FIRST_COLUMNS, NEAREST = 30, 100


def vertical_slash(B, M, N):
    x = Example("vertical-slash", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, i = positions(M, N)[:, None], np.arange(N)

    # Sums of the attention of the last queries by column, and by distance.
    p = softmax(logits(q, k), causal(M, N))[:, :, -LAST:]
    column, slash = p.sum(axis=2), np.zeros((B, 16, N))
    for row in range(-p.shape[2], 0):
        end = max(N + row + 1, 0)
        slash[..., :end] += p[:, :, row, :end][..., ::-1]

    # A distance is listed as the key it has from the last query.
    columns, diagonals = x.run("vertical_slash_select")
    compare_lists("columns", columns, column[:, :, None], True, i < FIRST_COLUMNS)
    cut = compare_lists("diagonals", diagonals, slash[:, :, None, ::-1], True, i[::-1] < NEAREST)
    check(cut or not B * M or N < 300, "no row was cut by score")
    vertical = tokens_of(columns, N)
    distances = tokens_of(diagonals, N)[:, :, 0, ::-1]

    distance = t - i
    on_slash = (distance >= 0) & distances[:, :, np.maximum(distance, 0)]
    ideal = (vertical | on_slash) & causal(M, N)
    compare_output("o", x.run("vertical_slash"), attention(q, k, v, ideal), v)

    # In the form of kernels a tile of queries attends to every block of keys that a slash touches in it.
    tiles, blocks = -(-M // TILE), -(-N // TILE)
    squares = np.pad(on_slash, ((0, 0), (0, 0), (0, tiles * TILE - M), (0, blocks * TILE - N)))
    touched = squares.reshape(B, 16, tiles, TILE, blocks, TILE).any(axis=(3, 5))
    rounded = rows_of(np.repeat(touched, TILE, axis=3)[..., :N], M, TILE)
    kernel = (vertical | rounded) & causal(M, N)
    check((kernel | ~ideal).all(), "the form of kernels leaves out a key")
    compare_output("blocks", x.run("vertical_slash_blocks"), attention(q, k, v, kernel), v)


if __name__ == "__main__":
    main(cases(vertical_slash, far_slashes=(1, 70, 5003)))
