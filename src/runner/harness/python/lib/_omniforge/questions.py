"""Questions to the client: what `ctx.elicit`, `ctx.sample`, `ctx.roots` and `ctx.ask` send, and what they give back."""

from _omniforge import asking

_SAMPLING = {
    "system_prompt": "systemPrompt",
    "include_context": "includeContext",
    "stop_sequences": "stopSequences",
    "model_preferences": "modelPreferences",
    "tool_choice": "toolChoice",
}


class Answer(dict):
    """A client's answer: a dict whose members are attributes too. May be awaited (`await ctx.elicit(…)`)."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError("the answer has no %r; it has %s" % (name, ", ".join(self) or "nothing")) from None

    def __await__(self):
        return self
        yield  # A generator, so that awaiting ends at once.


class Elicited(Answer):
    """The answer to an elicitation: `action` is accept, decline or cancel; `content` is what was filled in."""

    @property
    def accepted(self):
        """Whether the person filled it in."""
        return self.get("action") == "accept"

    @property
    def content(self):
        """What was filled in; None unless accepted."""
        return self.get("content")

    data = content


class Sampled(Answer):
    """A model's message; `text` is the text of its content."""

    @property
    def text(self):
        """The text of the message's text blocks, joined by newlines."""
        content = self.get("content") or []
        blocks = content if isinstance(content, list) else [content]
        return "\n".join(block.get("text", "") for block in blocks if block.get("type") == "text")


class Roots(list):
    """The client's roots, each a dict with `uri` and maybe `name`. May be awaited."""

    def __await__(self):
        return self
        yield  # A generator, so that awaiting ends at once.


class State:
    """What the tool keeps for its caller: JSON values of up to 64 KiB, 1 MiB in all."""

    def get(self, key, default=None, scope="caller"):
        """The value of a key."""
        answer = asking.request("state.get", {"key": key, "scope": scope})
        return answer["value"] if answer["found"] else default

    def set(self, key, value, scope="caller"):
        """Keeps a value."""
        asking.request("state.set", {"key": key, "value": value, "scope": scope})

    def delete(self, key, scope="caller"):
        """Forgets a value; says whether there was one."""
        return asking.request("state.delete", {"key": key, "scope": scope})["found"]


STATE = State()

def elicitation(message, schema=None, url=None):
    """The request of an elicitation: a form by its JSON schema (or a dataclass-like mapping of names), or a URL."""
    if url is not None:
        return {"method": "elicitation/create", "params": {"mode": "url", "message": str(message), "url": str(url)}}
    if schema is None:
        schema = {"type": "object", "properties": {}}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": str(message), "requestedSchema": schema}}


def sampling(messages, max_tokens=1024, **options):
    """The request of a sampling; `messages` is a text, one message or a list of them."""
    if isinstance(messages, (str, dict)):
        messages = [messages]
    params = {"messages": [_message(message) for message in messages], "maxTokens": int(max_tokens)}
    for name, value in options.items():
        if value is not None:
            params[_SAMPLING.get(name, name)] = value
    return {"method": "sampling/createMessage", "params": params}


def _message(message):
    if isinstance(message, str):
        return {"role": "user", "content": {"type": "text", "text": message}}
    content = message.get("content")
    if isinstance(content, str):
        return dict(message, content={"type": "text", "text": content})
    return message


def roots():
    """The request for the client's roots."""
    return {"method": "roots/list", "params": {}}


def ask(requests):
    """Sends all of them at once; the answers by key, when the last one is there."""
    if not isinstance(requests, dict) or not requests:
        raise TypeError("ctx.ask takes a dict of requests by key, such as {'name': ctx.elicitation(…)}")
    answers = asking.request("ask", {"requests": requests})
    return Answer({key: _answer(requests[key].get("method"), answer) for key, answer in answers.items()})


def ask_one(request, key):
    """Sends one request and gives its answer."""
    found = asking.request("ask", {"requests": {key or "": request}})
    return _answer(request["method"], next(iter(found.values())))


def _answer(method, answer):
    if method == "elicitation/create":
        return Elicited(answer)
    if method == "sampling/createMessage":
        return Sampled(answer)
    return Roots(answer.get("roots") or [])
