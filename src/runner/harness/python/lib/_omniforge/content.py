"""Content blocks that a tool may return, as MCP writes them."""

import binascii

from _omniforge import channel

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
    """A content block. Every kind takes `annotations` ({"audience", "priority", "lastModified"}) and `meta` (an object)."""

    annotations = None
    meta = None

    def _describe(self, annotations, meta):
        self.annotations = None if annotations is None else _annotations(annotations)
        self.meta = None if meta is None else _object(meta, "meta")

    def _block(self):
        block = self._body()
        if self.annotations is not None:
            block["annotations"] = self.annotations
        if self.meta is not None:
            block["_meta"] = self.meta
        return block

    def _body(self):
        raise NotImplementedError

    def _text(self):
        """What stands for it where only text is shown."""
        raise NotImplementedError

    def __repr__(self):
        return "<%s>" % self._text()


class Text(Content):
    """Plain text."""

    def __init__(self, text, *, annotations=None, meta=None):
        self.text = str(text)
        self._describe(annotations, meta)

    def _body(self):
        return {"type": "text", "text": self.text}

    def _text(self):
        return self.text


class _Media(Content):
    _type = ""

    def __init__(self, data=None, mime_type=None, *, path=None, format=None, annotations=None, meta=None):
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
        self._describe(annotations, meta)

    def _body(self):
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

    def __init__(
        self, uri, name=None, description=None, mime_type=None, *, title=None, size=None, annotations=None, meta=None
    ):
        self.uri = str(uri)
        self.name = str(name) if name is not None else self.uri.rstrip("/").rpartition("/")[2] or self.uri
        self.description = description
        self.mime_type = mime_type
        self.title = title
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**53):
            raise TypeError("the size of a ResourceLink is a number of bytes, not %r" % (size,))
        self.size = size
        self._describe(annotations, meta)

    def _body(self):
        block = {"type": "resource_link", "uri": self.uri, "name": self.name}
        for key, value in (("title", self.title), ("description", self.description), ("mimeType", self.mime_type)):
            if value is not None:
                block[key] = str(value)
        if self.size is not None:
            block["size"] = int(self.size)
        return block

    def _text(self):
        return "[resource: %s, %s]" % (self.name, self.uri)


class EmbeddedResource(Content):
    """A resource with its contents: `text`, or `blob` (bytes or their base64)."""

    def __init__(self, uri, text=None, blob=None, mime_type=None, *, annotations=None, meta=None):
        if (text is None) == (blob is None):
            raise TypeError("EmbeddedResource takes either text or blob")
        self.uri = str(uri)
        self.text = None if text is None else str(text)
        self.blob = None if blob is None else _base64(blob, "EmbeddedResource")[0]
        self.mime_type = mime_type
        self._describe(annotations, meta)

    def _body(self):
        resource = {"uri": self.uri}
        if self.mime_type is not None:
            resource["mimeType"] = str(self.mime_type)
        resource["text" if self.blob is None else "blob"] = self.text if self.blob is None else self.blob
        return {"type": "resource", "resource": resource}

    def _text(self):
        return "[resource: %s]" % self.uri


class Result:
    """A whole result: `content` (a block, a text, or a list of them), a `structured` value beside it, `meta` (an object).

    What is left out is made from the rest: without content, the text is the structured value's JSON.
    """

    def __init__(self, content=None, structured=None, *, meta=None):
        self.content = content
        self.structured = structured
        self.meta = None if meta is None else _object(meta, "meta")

    def _members(self):
        """The members of its frame, each as JSON."""
        members = {}
        if self.content is not None:
            items = self.content if isinstance(self.content, (list, tuple)) else [self.content]
            members["content"] = channel.encode(_blocks(items, "result.content"))
        if self.structured is not None:
            members["structured"] = channel.encode(_plain(self.structured, "result.structured"))
        if self.meta is not None:
            members["meta"] = channel.encode(self.meta)
        return members


def content_blocks(result):
    """The blocks of a returned Content or a list that holds one; None where the result is something else."""
    if isinstance(result, Content):
        result = [result]
    if not isinstance(result, (list, tuple)) or not any(isinstance(item, Content) for item in result):
        return None
    return _blocks(result, "result")


def _blocks(items, path):
    """The blocks of content, texts and other values, whose JSON becomes their text; a text is always among them."""
    items = [_content(item, "%s[%d]" % (path, index)) for index, item in enumerate(items)]
    blocks = [item._block() for item in items]
    if not any(block["type"] == "text" for block in blocks):
        blocks.append({"type": "text", "text": "\n".join(item._text() for item in items) or "(no output)"})
    return blocks


def _content(item, path):
    if isinstance(item, Content):
        return item
    if isinstance(item, Result):
        raise TypeError("%s is a Result; return it by itself" % path)
    return Text(item if isinstance(item, str) else channel.encode(_plain(item, path)))


_ANNOTATIONS = {
    "audience": "audience",
    "priority": "priority",
    "lastModified": "lastModified",
    "last_modified": "lastModified",
}


def _annotations(given):
    """Annotations as MCP writes them. Raises TypeError or ValueError that says what would be right."""
    made = {}
    for key, value in _object(given, "annotations").items():
        if key not in _ANNOTATIONS:
            raise ValueError("annotations have no %r; they have audience, priority and lastModified" % key)
        made[_ANNOTATIONS[key]] = value
    if "audience" in made:
        audience = [made["audience"]] if isinstance(made["audience"], str) else made["audience"]
        if not isinstance(audience, list) or not all(one in ("user", "assistant") for one in audience):
            raise ValueError('the audience is a list of "user" and "assistant", not %r' % (made["audience"],))
        made["audience"] = audience
    if "priority" in made:
        priority = made["priority"]
        if isinstance(priority, bool) or not isinstance(priority, (int, float)) or not 0 <= priority <= 1:
            raise ValueError("the priority is a number from 0 to 1, not %r" % (priority,))
    if "lastModified" in made and not isinstance(made["lastModified"], str):
        raise TypeError("lastModified is a moment, such as datetime.now(timezone.utc), or its ISO 8601 text")
    return made


def _plain(value, path):
    from _omniforge import results

    return results.plain(value, path)


def _object(value, path):
    plain = _plain(value, path)
    if not isinstance(plain, dict):
        raise TypeError("%s is an object (a dict), not a %s" % (path, type(value).__name__))
    return plain


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
