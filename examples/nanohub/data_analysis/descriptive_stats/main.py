import statistics


def main(data: str) -> dict:
    """Calculate descriptive statistics for a dataset.

    Args:
        data: Comma-separated list of numeric values (e.g., "1,2,3,4,5")
    """
    values = [float(item) for item in data.split(",")]
    return {
        "count": len(values),
        "mean": round(statistics.fmean(values), 6),
        "median": round(statistics.median(values), 6),
        "min": min(values),
        "max": max(values),
        "range": max(values) - min(values),
        "std": round(statistics.pstdev(values), 6),
        "sum": sum(values),
    }
