import math
from typing import Optional

SPEED_OF_LIGHT = 299792458  # m/s
PLANCK = 6.62607015e-34  # J·s
ELECTRON_VOLT = 1.602176634e-19  # J


def main(frequency: float, wavelength: Optional[float] = None, medium_speed: Optional[float] = None) -> dict:
    """Calculate wave properties (period, speed, wavelength, photon energy).

    Args:
        frequency: Wave frequency (Hz)
        wavelength: Wavelength (m)
        medium_speed: Speed in the medium (m/s); from the wavelength, else the speed of light, where it is left out
    """
    speed = medium_speed
    if speed is None:
        speed = SPEED_OF_LIGHT if wavelength is None else frequency * wavelength
    length = speed / frequency if wavelength is None else wavelength
    energy = PLANCK * frequency
    return {
        "frequency": float(frequency),
        "wavelength": round(length, 9),
        "speed": round(speed, 3),
        "period": round(1 / frequency, 9),
        "wave_number": round(math.tau / length, 6),
        "angular_frequency": round(math.tau * frequency, 6),
        "photon_energy_joules": energy,
        "photon_energy_eV": round(energy / ELECTRON_VOLT, 6),
    }
