def main() -> dict:
    return {
        "description": "Monthly average temperatures",
        "unit": "Celsius",
        "data": [2.1, 3.5, 7.2, 12.1, 17.3, 21.5, 24.2, 23.8, 19.4, 13.2, 7.1, 3.2],
        "labels": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(),
    }
