"""Confidence intervals of a mean by Student's t."""

import math
import statistics

# Two-sided 95 % quantiles for 1, 2, … degrees of freedom.
T_95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


def half_width_95(values: list[float]) -> float:
    """Half the width of the 95 % interval of the mean. NaN for a single value. With more than 31 values the quantile for
    30 degrees of freedom is used, so that the interval is slightly too wide."""
    freedom = len(values) - 1
    if freedom < 1:
        return math.nan
    return T_95[min(freedom, len(T_95)) - 1] * statistics.stdev(values) / math.sqrt(len(values))


def ratio_95(logs: list[float]) -> tuple[float, float, float]:
    """The geometric mean of ratios, from their logarithms, between the ends of its 95 % interval."""
    mean, half = statistics.mean(logs), half_width_95(logs)
    return math.exp(mean - half), math.exp(mean), math.exp(mean + half)
