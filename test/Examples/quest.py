# RUN: %python %s
"""examples/quest.mlir: pages ranked by an upper bound of their logits."""

from formulas import *

PAGE = 16


def quest(B, M, N):
    x = Example("quest", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, page = positions(M, N)[:, None], np.arange(-(-N // PAGE))
    see = page * PAGE <= t

    bound = np.full((B, 16, M, len(page)), -np.inf)
    for j in page:
        tokens = per_head(k[:, :, j * PAGE : (j + 1) * PAGE], 16)
        low, high = tokens.min(axis=2)[:, :, None], tokens.max(axis=2)[:, :, None]
        bound[..., j] = np.maximum(q * low, q * high).sum(axis=3)
    got = x.run("quest_bound")
    compare("bound", got, np.where(see, bound, -np.inf), "f32", np.abs(bound).max(initial=0))

    # No visible token exceeds the bound of its page.
    exact = np.where(causal(M, N), logits(q, k, 1.0), -np.inf)
    slack = 1e-5 * np.abs(bound).max(initial=0)
    check((exact <= np.repeat(got, PAGE, axis=3)[..., :N] + slack).all(), "a logit exceeds the bound of its page")

    lists = x.run("quest_select")
    cut = compare_lists("pages", lists, bound, see, page == t // PAGE)
    check(cut or not B * M or N < 400, "no row was cut by score")
    ref = attention(q, k, v, tokens_of(lists, N, PAGE) & causal(M, N))
    compare_output("o", x.run("quest"), ref, v)
    compare_output("gathered", x.run("quest_gathered"), ref, v)


if __name__ == "__main__":
    shorter = dict(odd_length=(1, 67, 67), batch_of_two=(2, 19, 131), chunk_of_a_longer_sequence=(1, 23, 325))
    main(cases(quest, **shorter, decode=(1, 1, 1037), decode_of_four_tokens=(2, 4, 811)))
