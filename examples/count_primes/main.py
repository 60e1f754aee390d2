from typing import Annotated


def main(ctx, below: Annotated[int, "Count the primes below this number, at most 5,000,000"] = 100_000) -> dict:
    """Count the prime numbers below a bound, and say how far the work is."""
    if not 0 <= below <= 5_000_000:
        raise ValueError("below must be from 0 to 5,000,000")
    sieve = bytearray([1]) * below
    sieve[:2] = bytes(min(below, 2))
    last = int(below**0.5)
    for number in range(2, last + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, below, number)))
        ctx.progress(number, last, f"crossed out the multiples of {number}")
    primes = sum(sieve)
    ctx.info({"below": below, "primes": primes})
    return {"primes": primes, "largest": sieve.rfind(1) if primes else None}
