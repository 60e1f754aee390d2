import math

from omniforge import ToolError

GRAVITY = 9.81  # m/s²
POINTS = 20


def main(v0: float, angle: float, h0: float = 0) -> dict:
    """Calculate projectile motion parameters.

    Args:
        v0: Initial velocity (m/s)
        angle: Launch angle (degrees)
        h0: Initial height (m)
    """
    vx, vy = v0 * math.cos(math.radians(angle)), v0 * math.sin(math.radians(angle))
    square = vy * vy + 2 * GRAVITY * h0
    if square < 0:
        raise ToolError("Invalid parameters")
    flight = (vy + math.sqrt(square)) / GRAVITY

    def height(t):
        return h0 + vy * t - GRAVITY * t * t / 2

    times = [flight * step / POINTS for step in range(POINTS + 1)]
    return {
        "range": round(vx * flight, 3),
        "max_height": round(height(vy / GRAVITY), 3),
        "time_of_flight": round(flight, 3),
        "initial_velocity_x": round(vx, 3),
        "initial_velocity_y": round(vy, 3),
        "trajectory": [{"t": round(t, 3), "x": round(vx * t, 3), "y": round(height(t), 3)} for t in times],
    }
