"""Show results: lines for a terminal while cases run, and Markdown tables for the documentation."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Result = Mapping[str, Any]


def lines(result: Result) -> str:
    """Return a result as it is printed."""
    head = f"{result['name']}: {result['what']}"
    if "error" in result:
        return f"{head}\n  NOT COMPARED: {result['error']}"
    return "\n".join(
        [
            head,
            *(
                _growth_lines(result)
                if result["kind"] == "growth"
                else _comparison_lines(result)
            ),
        ]
    )


def _comparison_lines(result: Result) -> list[str]:
    ours = result["ours"]
    out = [
        f"  {'jaxkern':<38} {seconds(ours['median_s']):>9}   {ours['per_second']:.4g} {result['unit']} a second; "
        f"compiled in {seconds(result['compile_s'])}, first call {seconds(result['first_call_s'])}"
    ]
    if result["recompiled"]:
        out.append(f"  RECOMPILED: {result['recompiled']} programs while it was timed")
    for name, peer in result["peers"].items():
        out.append(
            f"  {name:<38} {seconds(peer['median_s']):>9}   times slower than ours: {ahead(peer)}"
        )
    floor = result["floor"]
    if floor:
        over = (
            f"we take {interval(floor['over'])} times the floor{goal(floor, 'at most')}"
        )
        out.append(f"  {'floor':<38} {seconds(floor['median_s']):>9}   {over}")
        for name, part in floor["parts"].items():
            library = part["library"]
            out.append(
                f"    {name:<36} {seconds(part['medians_s'][library]):>9}   {library}"
            )
    return [
        *out,
        *(f"    {name}: {value:.4g}" for name, value in result["checked"].items()),
    ]


def _growth_lines(result: Result) -> list[str]:
    out = [
        f"  {result['variable']} = {point['size']:<10,} {seconds(point['median_s']):>9}   "
        f"{megabytes(point['added_bytes'])} more, {megabytes(point['bytes'])} in all"
        for point in result["points"]
    ]
    return [*out, f"  {growth(result)}"]


def growth(result: Result) -> str:
    """Return the exponents of growth and whether they are as wanted."""
    time, memory, targets = (
        result["exponent_of_time"],
        result["exponent_of_memory"],
        result["targets"],
    )
    said = [
        f"{name} grows like {result['variable']}^{found['slope']:.2f} ({found['low']:.2f} to {found['high']:.2f})"
        for name, found in (("time", time), ("memory", memory))
        if found
    ]
    said += [
        f"{name.replace('_', ' ')} {'as' if target['met'] else 'NOT as'} wanted"
        for name, target in targets.items()
    ]
    return ", ".join(said)


def table(document: Mapping[str, Any]) -> str:
    """Return the document as Markdown: what was measured on, one table of comparisons, and one of growth."""
    device, versions = document["device"], document["versions"]
    named = ", ".join(
        f"{name} {version}" for name, version in versions.items() if version
    )
    out = [
        f"{device['processor']}, {device['threads']} threads, GLIBC_TUNABLES={device['malloc']}; {named}; "
        f"{document['date'][:10]}."
        + (
            " Sizes of the smoke test: these times mean nothing."
            if document["small"]
            else ""
        ),
        "",
        *_sweeps(document["cases"]),
        "| case | ours | peer | its time | times faster (95 %) | over the floor (95 %) | compilation |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    compared = [
        case
        for case in document["cases"]
        if case["kind"] == "comparison" and "error" not in case
    ]
    grown = [
        case
        for case in document["cases"]
        if case["kind"] == "growth" and "error" not in case
    ]
    for case in compared:
        floor = case["floor"]
        over = interval(floor["over"]) + goal(floor, "at most") if floor else ""
        first = (f"{case['name']}: {case['what']}", seconds(case["ours"]["median_s"]))
        last = (over, seconds(case["compile_s"]))
        for name, peer in case["peers"].items():
            middle = (name, seconds(peer["median_s"]), ahead(peer))
            out.append(f"| {' | '.join((*first, *middle, *last))} |")
            first, last = ("", ""), ("", "")
    if grown:
        out += [
            "",
            "| case | size | time | memory added | growth |",
            "| --- | --- | --- | --- | --- |",
        ]
    for case in grown:
        name, said = f"{case['name']}: {case['what']}", growth(case)
        for point in case["points"]:
            size = f"{case['variable']} = {point['size']:,}"
            cells = (
                name,
                size,
                seconds(point["median_s"]),
                megabytes(point["added_bytes"]),
                said,
            )
            out.append(f"| {' | '.join(cells)} |")
            name = said = ""
    failed = [
        f"- {case['name']} was not compared: {case['error']}"
        for case in document["cases"]
        if "error" in case
    ]
    return "\n".join([*out, *(["", *failed] if failed else [])]) + "\n"


def _sweeps(cases: Sequence[Result]) -> list[str]:
    """Return a table of the sweeps, the worst of each first; nothing where there are none."""
    sweeps: dict[tuple[str, float], list[Result]] = {}
    for case in cases:
        if case.get("sweep"):
            sweeps.setdefault(tuple(case["sweep"]), []).append(case)
    out = [
        "| sweep | worst shape | times faster there | median | most over the floor |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (name, target), members in sweeps.items():
        first = [(next(iter(case["peers"].values())), case["what"]) for case in members]
        ratios = sorted(
            (peer["faster"]["median"], what) for peer, what in first if peer["repeats"]
        )
        if not ratios:
            continue
        middle = statistics.median(ratio for ratio, _ in ratios)
        said = f"{middle:.3g} of {len(ratios)}{goal({'target': target, 'met': middle >= target}, 'at least')}"
        floor = max(case["floor"]["over"]["median"] for case in members)
        out.append(
            f"| {name} | {ratios[0][1]} | {ratios[0][0]:.3g} | {said} | {floor:.3g} |"
        )
    return [*out, ""] if len(out) > 2 else []


def ahead(peer: Mapping[str, Any]) -> str:
    """Return how many times faster than a peer ours is, where its time repeats."""
    return (
        interval(peer["faster"]) + goal(peer, "at least")
        if peer["repeats"]
        else "peer's time does not repeat"
    )


def seconds(value: float) -> str:
    """Return a time with three digits and its unit."""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} us"


def megabytes(value: int | None) -> str:
    """Return an amount of memory."""
    return "unknown" if value is None else f"{value / 2**20:.1f} MiB"


def interval(ratio: Mapping[str, float]) -> str:
    """Return a ratio with its interval, and the coverage of this where the rounds were too few for 95 %."""
    short = "" if ratio["coverage"] >= 0.95 else f" at {100 * ratio['coverage']:.0f} %"
    return f"{ratio['median']:.3g} ({ratio['low']:.3g} to {ratio['high']:.3g}{short})"


def goal(found: Mapping[str, Any], word: str) -> str:
    """Return the target and whether it was met; nothing where there is none."""
    return (
        f", {'met' if found['met'] else 'MISSED'}: {word} {found['target']:g}"
        if "target" in found
        else ""
    )
