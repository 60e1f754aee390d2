"""What `main` of a saved resource, prompt or completion returned, in the one shape that the server reads."""

import binascii

from _omniforge import channel
from _omniforge.content import Content, EmbeddedResource, ResourceLink, Text
from _omniforge.failure import Refusal

_BYTES = (bytes, bytearray, memoryview)


def payload(result, expects):
    """The JSON text of a result of what is expected: a `resource`, a `prompt` or a `completion`."""
    shape = {"resource": _parts, "prompt": _prompt, "completion": _suggestions}[expects]
    return channel.encode(shape(result))


def _json(value):
    from _omniforge import results

    return results.plain(value)


def _is_part(value):
    return isinstance(value, (Content,) + _BYTES)


def _parts(result):
    if isinstance(result, str) or _is_part(result):
        return [_part(result, "result")]
    if isinstance(result, (list, tuple)) and any(map(_is_part, result)):
        return [_part(item, "result[%d]" % index) for index, item in enumerate(result)]
    return [{"text": channel.encode(_json(result)), "mimeType": "application/json"}]


def _part(value, path):
    if isinstance(value, str):
        return {"text": str.__str__(value)}
    if isinstance(value, _BYTES):
        return {"blob": binascii.b2a_base64(value, newline=False).decode("ascii")}
    if isinstance(value, Text):
        return {"text": value.text}
    if isinstance(value, EmbeddedResource):
        return value._block()["resource"]
    if isinstance(value, Content) and not isinstance(value, ResourceLink):
        return {"blob": value.data, "mimeType": value.mime_type}
    kind = type(value).__name__
    message = "%s is a %s; a resource holds str, bytes, Text, Image, Audio and EmbeddedResource" % (path, kind)
    raise Refusal("TypeError", message)


def _prompt(result):
    if isinstance(result, dict) and "messages" in result:
        made = {"messages": _messages(result["messages"])}
        if result.get("description") is not None:
            made["description"] = str(result["description"])
        return made
    return {"messages": _messages(result)}


def _messages(result):
    if not isinstance(result, (list, tuple)):
        return _message(result, "result")
    return [message for index, item in enumerate(result) for message in _message(item, "result[%d]" % index)]


def _message(item, path):
    """The messages that one item stands for: one for each block of its content."""
    role, content = "user", item
    if isinstance(item, dict) and "content" in item:
        unknown = [key for key in item if key not in ("role", "content")]
        if unknown:
            raise Refusal("TypeError", "%s has the key %r; a message has role and content" % (path, unknown[0]))
        role, content = item.get("role", "user"), item["content"]
        path += ".content"
        if role not in ("user", "assistant"):
            raise Refusal("ValueError", "%s is of the role %r; use user or assistant" % (path, role))
    blocks = content if isinstance(content, (list, tuple)) else [content]
    return [{"role": role, "content": _block(block, path)} for block in blocks]


def _block(value, path):
    if isinstance(value, str):
        return {"type": "text", "text": str.__str__(value)}
    if isinstance(value, Content):
        return value._block()
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        return _json(value)
    message = "%s is a %s; a message holds str, Text, Image, Audio, ResourceLink, EmbeddedResource or a dict with a type"
    raise Refusal("TypeError", message % (path, type(value).__name__))


def _suggestions(result):
    if isinstance(result, (str, dict)) or not hasattr(result, "__iter__"):
        raise Refusal("TypeError", "a completion returns a list of texts, not a %s" % type(result).__name__)
    plain = [_json(item) for item in result]
    return [item if isinstance(item, str) else channel.encode(item) for item in plain]
