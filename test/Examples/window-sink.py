# RUN: %python %s
"""examples/window-sink.mlir: the window, the first tokens, and learned sink logits."""

from formulas import *

WINDOW, SINK = 128, 4


def window_sink(B, M, N):
    x = Example("window-sink", B, M, N)
    q, k, v = x["q"], x["k"], x["v"]
    t, i = positions(M, N)[:, None], np.arange(N)
    window = (i <= t) & (t - i < WINDOW)
    compare_output("o", x.run("window_sink"), attention(q, k, v, window | (i <= t) & (i < SINK)), v)

    # A logit without a value: it takes its share of the softmax, and nothing comes of it.
    sink = np.broadcast_to(x["sinks"][:, None, None], (B, 16, M, 1))
    p = softmax(np.concatenate([logits(q, k), sink], axis=3), np.pad(window, ((0, 0), (0, 1)), constant_values=True))
    compare_output("sink logit", x.run("window_sink_logit"), p[..., :N] @ per_head(v, 16), v)


if __name__ == "__main__":
    main(cases(window_sink))
