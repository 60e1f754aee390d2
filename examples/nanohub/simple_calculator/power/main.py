def main(ctx, base: float, exponent: float) -> float:
    """Raise base to the power of exponent, with a word to the log."""
    ctx.info(f"Computing {base}^{exponent}")
    return float(base) ** float(exponent)
