"""What a tool gets from OmniForge: the call's context, content blocks, and errors that say what the author meant.

from omniforge import Image, ToolError, ctx

def main(city: str):
    ctx.info("looking up " + city)
    ctx.progress(1, 2, "halfway")
    raise ToolError("no such city")
"""

from _omniforge.content import (
    Audio,
    Content,
    EmbeddedResource,
    Image,
    ResourceLink,
    Result,
    Text,
    content_blocks,
)
from _omniforge.context import Context

__all__ = [
    "Audio",
    "Context",
    "EmbeddedResource",
    "Image",
    "MissingCapability",
    "ProtocolError",
    "ResourceLink",
    "Result",
    "Text",
    "ToolError",
    "ctx",
]

for _kind in (Audio, Content, Context, EmbeddedResource, Image, ResourceLink, Result, Text):
    _kind.__module__ = "omniforge"
content_blocks.__module__ = "omniforge"

ctx = Context()


class ToolError(Exception):
    """Ends the call with an error that shows exactly `text`, and `data` to programs."""

    def __init__(self, text="", data=None):
        super().__init__(text)
        self.text = str(text)
        self.data = data


class ProtocolError(Exception):
    """Ends the call with a JSON-RPC error instead of a result."""

    def __init__(self, code, text):
        if isinstance(code, bool) or not isinstance(code, int) or not -(2**31) <= code < 2**31:
            raise TypeError("the code of a ProtocolError must be an integer of 32 bits, not %r" % (code,))
        super().__init__(text)
        self.code = code
        self.text = str(text)


class MissingCapability(ProtocolError):
    """The client can't do what was asked of it, such as elicitation. Uncaught, it tells the client what is missing."""

    def __init__(self, text):
        super().__init__(-32021, text)
