#!/usr/bin/env python3
"""Write reference.json: what SciPy says about five published tables. runs_file_test.cpp compares `trainyard compare --from`
with it. All p-values and intervals are those of scipy.stats.ttest_rel and ttest_ind.

Sources, all in R (datasets, MASS) or its package HistData:
- sleep.csv: Cushny and Peebles 1905, used by Student 1908 (datasets::sleep)
- maize.csv: Darwin 1876, used by Fisher 1935 (HistData::ZeaMays)
- barley.csv: Immer, Hayes and Powers 1934 (MASS::immer)
- plants.csv: Dobson 1983 (datasets::PlantGrowth)
- looms.csv: Tippett 1950, used by Tukey 1977 (datasets::warpbreaks)
"""

import csv
import json
import math
import pathlib

import scipy
from scipy import stats

HERE = pathlib.Path(__file__).parent

STUDIES = [
    # a tiny margin: p is that of the t test against 0, 0.002833 in R's help page of `sleep`
    dict(table="sleep.csv", arm="group", baseline="1", metric="extra", pair=["ID"], kind="score", margin=1e-9),
    dict(table="sleep.csv", arm="group", baseline="1", metric="extra", pair=["ID"], kind="score", margin=2.5),
    dict(table="maize.csv", arm="fertilisation", baseline="self", metric="height", pair=["pair"], kind="score", margin=1),
    dict(table="barley.csv", arm="year", baseline="1931", metric="yield", pair=["location", "variety"], kind="loss",
         better="higher"),
    dict(table="plants.csv", arm="group", baseline="ctrl", metric="weight", kind="score", margin=0.25),
    dict(table="looms.csv", arm="wool", baseline="A", metric="breaks", kind="loss", by=["tension"]),
]


def options(study):
    texts = []
    for name in ["arm", "baseline", "metric", "kind", "better", "margin"]:
        if name in study:
            texts += [f"--{name}", str(study[name])]
    for name in ["pair", "by"]:
        for column in study.get(name, []):
            texts += [f"--{name}", column]
    return texts


def holm(p):
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, highest = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = highest
    return adjusted


def verdict(study, baseline, arm):
    """Numbers of one arm in one cell. Both: the values by pair, or by row."""
    pair = study.get("pair")
    keys = [key for key in baseline if key in arm] if pair else None
    a = [baseline[key] for key in keys] if pair else list(baseline.values())
    b = [arm[key] for key in keys] if pair else list(arm.values())
    ratio = study["kind"] == "loss"
    higher = study.get("better", "lower" if ratio else "higher") == "higher"
    margin = math.log(1.02) if ratio else study["margin"]
    scale = (lambda values, shift=0.0: [math.log(value) + shift for value in values]) if ratio else (
        lambda values, shift=0.0: [value + shift for value in values])
    test = stats.ttest_rel if pair else (lambda x, y, **how: stats.ttest_ind(x, y, equal_var=False, **how))
    p = lambda shift, side: float(test(scale(b, shift), scale(a), alternative=side).pvalue)
    above, below = p(-margin, "greater"), p(margin, "less")  # the arm is higher, or lower, by more than the margin
    inside = max(p(margin, "greater"), p(-margin, "less"))
    better, worse = (above, below) if higher else (below, above)
    whole = test(scale(b), scale(a))
    change = (lambda value: 100 * math.expm1(value)) if ratio else (lambda value: value)
    numbers = {"effect": change((sum(scale(b)) / len(b)) - (sum(scale(a)) / len(a)))}
    for level in [95, 90]:
        interval = whole.confidence_interval(level / 100)
        numbers[f"ci{level}"] = [change(float(interval.low)), change(float(interval.high))]
    words = {"IMPROVES": 2 * better, "DETERIORATES": 2 * worse, "NO CHANGE": inside}
    word = min(words, key=words.get)
    return {**numbers, "p": min(1.0, words[word]), "word": word, "n": min(len(a), len(b))}


def answers(study):
    cells = {}
    with open(HERE / study["table"], newline="") as table:
        for line, row in enumerate(csv.DictReader(table)):
            key = tuple(row[column] for column in study.get("pair", [])) or line
            cell = ", ".join(f"{column} {row[column]}" for column in study.get("by", []))
            cells.setdefault(cell, {}).setdefault(row[study["arm"]], {})[key] = float(row[study["metric"]])
    found = []
    for cell, arms in cells.items():
        baseline = arms[study["baseline"]]
        found += [{"cell": cell or "all runs", "arm": name, **verdict(study, baseline, arm)}
                  for name, arm in arms.items() if name != study["baseline"]]
    for name in {one["arm"] for one in found}:
        family = [one for one in found if one["arm"] == name]
        for one, p in zip(family, holm([one["p"] for one in family])):
            one["p"] = p
            one["word"] = one["word"] if p <= 0.05 else "INCONCLUSIVE"
    return found


def main():
    reference = [{"table": study["table"], "options": options(study), "verdicts": answers(study)} for study in STUDIES]
    text = json.dumps({"scipy": scipy.__version__, "tables": reference}, indent=1)
    (HERE / "reference.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
