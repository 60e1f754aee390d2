FORM = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "title": "How many guests?", "minimum": 1, "maximum": 20},
        "vegetarian": {"type": "boolean", "title": "Vegetarian?", "default": False},
    },
    "required": ["guests"],
}


def main(ctx, dish: str) -> str:
    """Ask the person how many guests come, and say what to buy.

    Args:
        dish: What is cooked, such as "lasagne"
    """
    answer = ctx.elicit(f"You want to cook {dish}.", FORM)
    if not answer.accepted:
        return "Nothing is planned."
    kind = "vegetarian " if answer.content.get("vegetarian") else ""
    return f"Buy {answer.content['guests']} portions for a {kind}{dish}."
