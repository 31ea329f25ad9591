"""Draws the dashboard of template.yaml from lines of metrics, as an SVG on standard output.

    cargo run -p leasehold-sandbox -- soak --duration 3m --seed 7 --logs /tmp/soak
    python3 docs/dashboard.py < /tmp/soak/metrics.jsonl > docs/dashboard.svg

Lines may stand among others, as in a function's log. What CloudWatch would make of them is done here: values are gathered by
time, waits become percentiles, counts are added up.
"""

import json
import math
import sys

WIDTH, HEIGHT, GAP = 520, 230, 18
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 40, 44
COLOURS = ["#1f77b4", "#d1495b", "#2a9d5c", "#e09f1f"]
BINS = 60
# Each widget: its title, its unit, and its lines: a label and what to take of a period.
WIDGETS = [
    ("Wait for a lease", "ms", [("p50", ("Wait", 0.5)), ("p99", ("Wait", 0.99))]),
    ("Contention", "", [("contended", "Contended"), ("busy", "Busy"), ("taken over", "Takeovers")]),
    ("Lost leases and crash releases", "", [("lost", "Lost"), ("crash releases", "CrashReleases")]),
    ("Errors and throttles of DynamoDB", "", [("requests not served", "Errors"), ("throttled", "Throttles")]),
]


def read(source):
    for line in source:
        start = line.find("{")
        if start >= 0 and '"_aws"' in line:
            yield json.loads(line[start:])


def percentile(values, part):
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)] if values else None


def of_period(lines, what):
    if isinstance(what, tuple):
        name, part = what
        return percentile([value for line in lines for value in line.get(name, [])], part)
    return sum(line.get(what, 0) for line in lines)


def unbroken(values):
    """The parts of a line between periods in which there was nothing."""
    part = []
    for n, value in enumerate(values + [None]):
        if value is not None:
            part.append((n, value))
        elif part:
            # A period by itself is a dot: a line from it to itself.
            yield part if len(part) > 1 else part * 2
            part = []


def nice(most):
    """The next round number above."""
    step = 10 ** math.floor(math.log10(most)) if most > 0 else 1
    return next(step * factor for factor in (1, 2, 2.5, 5, 10) if step * factor >= most) if most > 0 else 1


def number(value):
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def panel(x, y, title, unit, series, seconds):
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    top = nice(max((v for _, values in series for v in values if v is not None), default=0))
    out = [f'<g transform="translate({x},{y})">', f'<rect class="panel" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    out.append(f'<text class="title" x="14" y="24">{title}{" (" + unit + ")" if unit else ""}</text>')
    for part in range(5):
        height = TOP + high - high * part / 4
        out.append(f'<line class="grid" x1="{LEFT}" y1="{height:.1f}" x2="{LEFT + wide}" y2="{height:.1f}"/>')
        out.append(f'<text class="axis" x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{number(top * part / 4)}</text>')
    for part in range(5):
        at = LEFT + wide * part / 4
        out.append(f'<text class="axis" x="{at:.1f}" y="{TOP + high + 16}" text-anchor="middle">{seconds * part / 4:.0f} s</text>')
    for (label, values), colour in zip(series, COLOURS):
        for points in unbroken(values):
            at = " ".join(
                f"{LEFT + wide * (n + 0.5) / len(values):.1f},{TOP + high - high * value / top:.1f}" for n, value in points
            )
            out.append(f'<polyline stroke="{colour}" points="{at}"/>')
    at = LEFT
    for (label, _), colour in zip(series, COLOURS):
        out.append(f'<rect x="{at}" y="{HEIGHT - 16}" width="10" height="4" fill="{colour}"/>')
        out.append(f'<text class="axis" x="{at + 15}" y="{HEIGHT - 10}">{label}</text>')
        at += 34 + 6.4 * len(label)
    return "\n".join(out + ["</g>"])


def main():
    lines = list(read(sys.stdin))
    if not lines:
        sys.exit("dashboard.py: no lines of metrics on standard input")
    times = [line["_aws"]["Timestamp"] for line in lines]
    first, span = min(times), max(max(times) - min(times), 1)
    periods = [[] for _ in range(BINS)]
    for line, time in zip(lines, times):
        periods[min(BINS - 1, (time - first) * BINS // span)].append(line)
    panels = []
    for n, (title, unit, wanted) in enumerate(WIDGETS):
        series = [(label, [of_period(lines_then, what) for lines_then in periods]) for label, what in wanted]
        x, y = GAP + n % 2 * (WIDTH + GAP), GAP + n // 2 * (HEIGHT + GAP)
        panels.append(panel(x, y, title, unit, series, span / 1000))
    width, height = 2 * WIDTH + 3 * GAP, 2 * HEIGHT + 3 * GAP
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">')
    print("<style>text{font-family:sans-serif;fill:#333}.title{font-size:15px;font-weight:bold}.axis{font-size:11px}"
          ".panel{fill:#fff;stroke:#d5d9d9}.grid{stroke:#e6e8e8;stroke-width:1}polyline{fill:none;stroke-width:1.8;stroke-linecap:round}</style>")
    print(f'<rect width="{width}" height="{height}" fill="#f2f3f3"/>')
    print("\n".join(panels))
    print("</svg>")


main()
