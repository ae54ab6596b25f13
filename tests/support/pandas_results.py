"""Compare tables/results.csv of a report with pandas, bit for bit: count, mean and standard deviation per model and strategy.

    python3 pandas_results.py RESULTS FINAL

FINAL is from `trainyard export final`. Prints the number of groups, or the first
difference and exit code 1.
"""
import sys

import pandas

# The usual parser of floats may be wrong in the last bit.
results, final = (pandas.read_csv(file, float_precision="round_trip") for file in sys.argv[1:3])
groups = 0
for column, rows in results.groupby("column"):
    cost = column.endswith(("_seconds", "_joules")) and column != "epoch_processor_seconds"
    counted = final[final.times_count == 1] if cost else final
    expected = counted.groupby(["model", "strategy"])[column].agg(["count", "mean", "std"])
    for row in rows.itertuples():
        n, mean, sd = expected.loc[(row.model, row.arm)] if (row.model, row.arm) in expected.index else (0, None, None)
        for name, ours, theirs in (("n", row.n, n), ("mean", row.mean, mean), ("sd", row.sd, sd)):
            if not (ours == theirs or (pandas.isna(ours) and pandas.isna(theirs))):
                sys.exit(f"{name} of {column}, {row.model} {row.arm}: {ours!r}, but pandas has {theirs!r}")
        groups += 1
print(groups, "groups are equal")
