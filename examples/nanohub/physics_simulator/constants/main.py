CONSTANTS = {
    "speed_of_light": (299792458, "m/s", "c"),
    "gravitational_acceleration": (9.81, "m/s^2", "g"),
    "planck_constant": (6.62607015e-34, "J*s", "h"),
    "boltzmann_constant": (1.380649e-23, "J/K", "k_B"),
    "gas_constant": (8.314462, "J/(mol*K)", "R"),
    "avogadro_number": (6.02214076e23, "1/mol", "N_A"),
    "electron_mass": (9.1093837015e-31, "kg", "m_e"),
    "proton_mass": (1.67262192369e-27, "kg", "m_p"),
    "elementary_charge": (1.602176634e-19, "C", "e"),
}


def main() -> dict:
    return {name: dict(zip(("value", "unit", "symbol"), facts)) for name, facts in CONSTANTS.items()}
