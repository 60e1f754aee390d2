import statistics
from typing import Literal


def main(data: str, method: Literal["minmax", "zscore"] = "minmax") -> dict:
    """Normalize a dataset.

    Args:
        data: Comma-separated list of values
        method: To the range 0 to 1 (minmax), or to mean 0 and standard deviation 1 (zscore)
    """
    values = [float(item) for item in data.split(",")]
    if method == "minmax":
        low, high = min(values), max(values)
        scaled = [(value - low) / (high - low) if high > low else 0.5 for value in values]
        facts = {"min": low, "max": high}
    else:
        mean, std = statistics.fmean(values), statistics.pstdev(values)
        scaled = [(value - mean) / std if std else 0.0 for value in values]
        facts = {"mean": round(mean, 6), "std": round(std, 6)}
    return {"normalized": [round(value, 6) for value in scaled], "method": method, **facts}
