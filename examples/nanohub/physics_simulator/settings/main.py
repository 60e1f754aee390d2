def main() -> dict:
    simulations = ["projectile_motion", "harmonic_oscillator", "wave_properties", "ideal_gas", "relativistic_energy"]
    return {"precision": 6, "default_gravity": 9.81, "supported_simulations": simulations}
