import math


def main(mass: float, spring_constant: float, amplitude: float, time: float) -> dict:
    """Calculate simple harmonic motion parameters.

    Args:
        mass: Mass of oscillator (kg)
        spring_constant: Spring constant k (N/m)
        amplitude: Maximum displacement (m)
        time: Time point to evaluate (s)
    """
    omega = math.sqrt(spring_constant / mass)
    position = amplitude * math.cos(omega * time)
    velocity = -amplitude * omega * math.sin(omega * time)
    found = {
        "position": position,
        "velocity": velocity,
        "acceleration": -omega * omega * position,
        "angular_frequency": omega,
        "period": math.tau / omega,
        "frequency": omega / math.tau,
        "kinetic_energy": mass * velocity**2 / 2,
        "potential_energy": spring_constant * position**2 / 2,
        "total_energy": spring_constant * amplitude**2 / 2,
    }
    return {name: round(value, 6) for name, value in found.items()}
