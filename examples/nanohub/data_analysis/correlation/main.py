import math
import statistics

from omniforge import ToolError


def main(x_data: str, y_data: str) -> dict:
    """Calculate the Pearson correlation coefficient between two datasets.

    Args:
        x_data: First comma-separated list of values
        y_data: Second comma-separated list of values
    """
    x, y = ([float(item) for item in data.split(",")] for data in (x_data, y_data))
    if len(x) != len(y):
        raise ToolError("Datasets must have the same length")
    if len(x) < 2:
        raise ToolError("Need at least 2 data points")
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    covariance = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / len(x)
    spread = statistics.pstdev(x) * statistics.pstdev(y)
    if spread == 0:
        raise ToolError("Standard deviation is zero")
    r = covariance / spread
    return {
        "correlation_coefficient": round(r, 6),
        "r_squared": round(r * r, 6),
        "covariance": round(covariance, 6),
        "n": len(x),
    }
