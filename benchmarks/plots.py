# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots of what compare.py measured: by matplotlib where it is installed, else plain SVG."""

import pathlib

COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#5d5179", "#8d8d8d", "#00798c", "#b56576", "#a3b18a", "#6f4e37", "#c77dff", "#222222")


def bars(path, title, unit, rows):
    """Horizontal bars; `rows` is a list of (label, [(name, value)])."""
    names = list(dict.fromkeys(name for _, values in rows for name, _ in values))
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    try:
        import matplotlib
    except ImportError:
        return bars_svg(pathlib.Path(path).with_suffix(".svg"), title, unit, rows, colour)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 1 + 0.28 * sum(len(values) + 1 for _, values in rows)))
    y, ticks = 0, []
    for label, values in rows:
        ticks.append((y + (len(values) - 1) / 2, label))
        for name, value in values:
            axes.barh(y, value, color=colour[name])
            axes.text(value, y, f" {value:.3g}", va="center", fontsize=7)
            y += 1
        y += 1
    axes.set_yticks([t for t, _ in ticks], [label for _, label in ticks], fontsize=8)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(title)
    axes.legend([pyplot.Rectangle((0, 0), 1, 1, color=colour[name]) for name in names], names, fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return path


def bars_svg(path, title, unit, rows, colour):
    def text(x, y, content, anchor="start"):
        content = content.replace("&", "&amp;").replace("<", "&lt;")
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{content}</text>'

    left, width, step, y = 330, 480, 14, 50
    most = max(value for _, values in rows for _, value in values)
    parts = [text(10, 20, f"{title} ({unit})")]
    for i, (name, fill) in enumerate(colour.items()):
        parts.append(f'<rect x="{left + 110 * i}" y="28" width="10" height="10" fill="{fill}"/>' + text(left + 110 * i + 14, 37, name))
    for label, values in rows:
        parts.append(text(left - 6, y + step * len(values) / 2 + 4, label, "end"))
        for name, value in values:
            parts.append(f'<rect x="{left}" y="{y}" width="{width * value / most:.1f}" height="{step - 3}" fill="{colour[name]}"/>')
            parts.append(text(left + width * value / most + 4, y + step - 4, f"{value:.3g}"))
            y += step
        y += step / 2
    body = "\n".join(parts)
    style = "font-family:sans-serif;font-size:11px"
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{y + 20:.0f}" style="{style}">\n{body}\n</svg>\n')
    return path


def draw(results, folder):
    """Speed-up against dense attention, share of the roof, and time against the number of tokens where there are several."""
    folder.mkdir(parents=True, exist_ok=True)
    done = [r for r in results if r["ms"]]
    sizes = sorted({r["tokens"] for r in done if r["tokens"]})
    drawn = []
    roof = [(r["title"], [(name, 100 * r["floor_ms"] / ms) for name, ms in r["ms"].items()]) for r in done if r["floor_ms"]]
    if roof:
        drawn.append(bars(folder / "roof.png", "Share of the roof", "%", roof))
    for n in sizes:
        dense = next((min(r["ms"].values()) for r in done if r["tokens"] == n and r["name"] == "dense"), None)
        rows = [(r["name"], [(name, dense / ms) for name, ms in r["ms"].items()]) for r in done if dense and r["tokens"] == n and r["kind"] == "attend"]
        if rows:
            drawn.append(bars(folder / f"speedup-{n}.png", f"Times as fast as the best dense attention, {n} tokens", "x", rows))
    for name in dict.fromkeys(r["name"] for r in done):
        rows = [(str(r["tokens"]), list(r["ms"].items())) for r in done if r["name"] == name]
        if len(rows) > 1:
            drawn.append(bars(folder / f"time-{name}.png", f"{name}: time against tokens", "ms", rows))
    return drawn
