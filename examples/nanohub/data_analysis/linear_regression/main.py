import math
import statistics

from omniforge import ToolError


def main(x_data: str, y_data: str) -> dict:
    """Perform simple linear regression (y = mx + b).

    Args:
        x_data: Independent variable values (comma-separated)
        y_data: Dependent variable values (comma-separated)
    """
    x, y = ([float(item) for item in data.split(",")] for data in (x_data, y_data))
    if len(x) != len(y):
        raise ToolError("Datasets must have the same length")
    if len(x) < 2:
        raise ToolError("Need at least 2 data points")
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    width = math.fsum((a - mean_x) ** 2 for a in x)
    if width == 0:
        raise ToolError("Cannot compute regression (x values are constant)")
    slope = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / width
    intercept = mean_y - slope * mean_x
    left = math.fsum((b - slope * a - intercept) ** 2 for a, b in zip(x, y))
    total = math.fsum((b - mean_y) ** 2 for b in y)
    return {
        "slope": round(slope, 6),
        "intercept": round(intercept, 6),
        "r_squared": round(1 - left / total, 6) if total else 0,
        "equation": f"y = {round(slope, 4)}x + {round(intercept, 4)}",
        "n": len(x),
    }
