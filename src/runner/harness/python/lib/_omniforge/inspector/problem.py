"""A fault in the code that keeps it from being saved."""


class CodeError(Exception):
    """What is wrong, and where: line and column from 1."""

    def __init__(self, message, line=None, column=None):
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    @classmethod
    def at(cls, node, message):
        """A fault at a node of the syntax tree."""
        return cls(message, node.lineno, node.col_offset + 1)

    def frame(self, code):
        """The answer that says so."""
        lines = code.splitlines()
        text = lines[self.line - 1] if self.line and self.line <= len(lines) else None
        return {
            "type": "code_error",
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "text": text[:500] if text is not None else None,
        }
