def main() -> dict:
    operations = ["add", "subtract", "multiply", "divide", "power"]
    return {"precision": 10, "max_value": 1e308, "supported_operations": operations}
