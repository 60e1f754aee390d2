import math

from omniforge import ToolError

SPEED_OF_LIGHT = 299792458  # m/s


def main(ctx, rest_mass: float, velocity: float) -> dict:
    """Calculate relativistic energy and momentum.

    Args:
        rest_mass: Rest mass (kg)
        velocity: Velocity (m/s)
    """
    if abs(velocity) >= SPEED_OF_LIGHT:
        raise ToolError("Velocity must be less than speed of light")
    ctx.info(f"Calculating relativistic properties for v = {velocity} m/s")
    beta = velocity / SPEED_OF_LIGHT
    gamma = 1 / math.sqrt(1 - beta * beta)
    rest = rest_mass * SPEED_OF_LIGHT**2
    return {
        "lorentz_factor": round(gamma, 9),
        "beta": round(beta, 9),
        "relativistic_mass_kg": gamma * rest_mass,
        "rest_energy_J": rest,
        "kinetic_energy_J": gamma * rest - rest,
        "total_energy_J": gamma * rest,
        "momentum_kg_m_s": gamma * rest_mass * velocity,
    }
