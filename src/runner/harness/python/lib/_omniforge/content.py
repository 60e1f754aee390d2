"""Content blocks that a tool may return, as MCP writes them."""

import binascii

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"<svg", "image/svg+xml"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


class Content:
    """A content block."""

    def _block(self):
        raise NotImplementedError

    def _text(self):
        """What stands for it where only text is shown."""
        raise NotImplementedError

    def __repr__(self):
        return "<%s>" % self._text()


class Text(Content):
    """Plain text."""

    def __init__(self, text):
        self.text = str(text)

    def _block(self):
        return {"type": "text", "text": self.text}

    def _text(self):
        return self.text


class _Media(Content):
    _type = ""

    def __init__(self, data=None, mime_type=None, *, path=None, format=None):
        if (data is None) == (path is None):
            raise TypeError("%s takes either data or path" % type(self).__name__)
        if path is not None:
            with open(path, "rb") as file:
                data = file.read()
        self.data, raw = _base64(data, type(self).__name__)
        if mime_type is None and format is not None:
            mime_type = "%s/%s" % (self._type, format.lower())
        self.mime_type = mime_type or _mime_type(raw, self._type)
        self._size = len(raw)

    def _block(self):
        return {"type": self._type, "data": self.data, "mimeType": self.mime_type}

    def _text(self):
        return "[%s: %s, %d bytes]" % (self._type, self.mime_type, self._size)


class Image(_Media):
    """A picture: its bytes (or their base64), or the `path` of its file."""

    _type = "image"


class Audio(_Media):
    """A sound: its bytes (or their base64), or the `path` of its file."""

    _type = "audio"


class ResourceLink(Content):
    """A reference to a resource."""

    def __init__(self, uri, name=None, description=None, mime_type=None):
        self.uri = str(uri)
        self.name = str(name) if name is not None else self.uri.rstrip("/").rpartition("/")[2] or self.uri
        self.description = description
        self.mime_type = mime_type

    def _block(self):
        block = {"type": "resource_link", "uri": self.uri, "name": self.name}
        if self.description is not None:
            block["description"] = str(self.description)
        if self.mime_type is not None:
            block["mimeType"] = str(self.mime_type)
        return block

    def _text(self):
        return "[resource: %s, %s]" % (self.name, self.uri)


class EmbeddedResource(Content):
    """A resource with its contents: `text`, or `blob` (bytes or their base64)."""

    def __init__(self, uri, text=None, blob=None, mime_type=None):
        if (text is None) == (blob is None):
            raise TypeError("EmbeddedResource takes either text or blob")
        self.uri = str(uri)
        self.text = None if text is None else str(text)
        self.blob = None if blob is None else _base64(blob, "EmbeddedResource")[0]
        self.mime_type = mime_type

    def _block(self):
        resource = {"uri": self.uri}
        if self.mime_type is not None:
            resource["mimeType"] = str(self.mime_type)
        resource["text" if self.blob is None else "blob"] = self.text if self.blob is None else self.blob
        return {"type": "resource", "resource": resource}

    def _text(self):
        return "[resource: %s]" % self.uri


def content_blocks(result):
    """The blocks of a returned Content or list of them; None where the result is something else."""
    if isinstance(result, Content):
        result = [result]
    if not isinstance(result, (list, tuple)) or not any(isinstance(item, Content) for item in result):
        return None
    items = [Text(item) if isinstance(item, str) else item for item in result]
    for index, item in enumerate(items):
        if not isinstance(item, Content):
            message = "result[%d] is a %s; a list of content holds content and str only" % (index, type(item).__name__)
            raise TypeError(message)
    blocks = [item._block() for item in items]
    if not any(block["type"] == "text" for block in blocks):
        blocks.append({"type": "text", "text": "\n".join(item._text() for item in items)})
    return blocks


def _base64(data, name):
    if isinstance(data, str):
        try:
            raw = binascii.a2b_base64(data.encode("ascii"))
        except (ValueError, UnicodeEncodeError):
            raise ValueError("%s takes bytes or their base64; this text is no base64" % name) from None
        return binascii.b2a_base64(raw, newline=False).decode("ascii"), raw
    if isinstance(data, (bytes, bytearray, memoryview)):
        return binascii.b2a_base64(data, newline=False).decode("ascii"), bytes(data)
    raise TypeError("%s takes bytes or their base64, not a %s" % (name, type(data).__name__))


def _mime_type(raw, kind):
    if raw[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(raw[8:12], kind + "/webp")
    for signature, mime_type in _SIGNATURES:
        if raw.startswith(signature):
            return mime_type
    raise ValueError('the kind of %s can\'t be told from its bytes; pass mime_type="%s/…"' % (kind, kind))
