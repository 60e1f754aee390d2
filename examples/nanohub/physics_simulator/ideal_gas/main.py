from typing import Optional

from omniforge import ToolError

GAS_CONSTANT = 8.314462  # J/(mol·K)
ATMOSPHERE = 101325  # Pa


def main(
    pressure: Optional[float] = None,
    volume: Optional[float] = None,
    n_moles: Optional[float] = None,
    temperature: Optional[float] = None,
) -> dict:
    """Ideal gas law calculator (PV = nRT). Provide 3 of the 4 variables to calculate the fourth.

    Args:
        pressure: Pressure (Pa)
        volume: Volume (m³)
        n_moles: Amount of substance (mol)
        temperature: Temperature (K)
    """
    if [pressure, volume, n_moles, temperature].count(None) != 1:
        raise ToolError("Provide exactly 3 of: pressure, volume, n_moles, temperature")
    if pressure is None:
        pressure = n_moles * GAS_CONSTANT * temperature / volume
    elif volume is None:
        volume = n_moles * GAS_CONSTANT * temperature / pressure
    elif n_moles is None:
        n_moles = pressure * volume / (GAS_CONSTANT * temperature)
    else:
        temperature = pressure * volume / (n_moles * GAS_CONSTANT)
    return {
        "pressure_Pa": round(pressure, 3),
        "pressure_atm": round(pressure / ATMOSPHERE, 6),
        "volume_m3": round(volume, 9),
        "volume_L": round(volume * 1000, 6),
        "n_moles": round(n_moles, 6),
        "temperature_K": round(temperature, 3),
        "temperature_C": round(temperature - 273.15, 3),
    }
