def main() -> dict:
    return {
        "description": "Study hours vs exam score",
        "x_label": "Study Hours",
        "y_label": "Exam Score",
        "x": list(range(1, 11)),
        "y": [52, 58, 65, 68, 72, 78, 82, 85, 90, 95],
    }
