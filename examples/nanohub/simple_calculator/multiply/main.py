def main(a: float, b: float) -> float:
    """Multiply two numbers."""
    return float(a) * float(b)
