def main(a: float, b: float) -> float:
    """Add two numbers together."""
    return float(a) + float(b)
