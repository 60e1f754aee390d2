def main(a: float, b: float) -> float:
    """Subtract b from a."""
    return float(a) - float(b)
