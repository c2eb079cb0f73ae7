# RUN: %python %s
"""examples/second-stream.mlir: compressed entries and a window of raw tokens in one softmax with a sink."""

from dsa import indexer
from formulas import *

WINDOW = 128


def one_softmax(x, entries, keep_entries, window):
    """Entries, raw tokens and the sink side by side; keys are values."""
    q, k = x["q"], x["k"]
    B, H, M, _ = q.shape
    rows = np.concatenate([entries, k], axis=2)
    sink = np.broadcast_to(x["sinks"][:, None, None], (B, H, M, 1))
    keep_entries = np.broadcast_to(keep_entries, (B, 1, M, entries.shape[2]))
    keep = np.concatenate([keep_entries, np.broadcast_to(window, (B, 1) + window.shape), np.ones((B, 1, M, 1), bool)], axis=3)
    p = softmax(np.concatenate([logits(q, rows), sink], axis=3), keep)
    return p[..., :-1] @ per_head(rows, H)


def second_stream(B, M, N):
    x = Example("second-stream", B, M, N)
    e, e128, k = x["e"], x["e128"], x["k"]
    t, i = positions(M, N)[:, None], np.arange(N)
    window = (i <= t) & (t - i < WINDOW)
    largest = np.concatenate([e, e128, k], axis=2)

    # CSA: entry e once its four tokens are there.
    visible = np.arange(e.shape[2]) < (t + 1) // 4
    lists = x.run("csa_select")
    cut = compare_lists("entries", lists, indexer(x, x["ei"], x["sc"]), visible)
    check(cut or N < 300, "no row was cut by score")
    ref = one_softmax(x, e, tokens_of(lists, e.shape[2]) & visible, window)
    compare_output("csa", x.run("csa"), ref, largest)

    # HCA: every entry of 128 tokens that are there.
    ref = one_softmax(x, e128, np.arange(e128.shape[2]) < (t + 1) // 128, window)
    compare_output("hca", x.run("hca"), ref, largest)


if __name__ == "__main__":
    main(cases(second_stream))
