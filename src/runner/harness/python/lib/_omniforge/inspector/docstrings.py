"""Reads docstrings: the first paragraph, and what they say of parameters (Google, NumPy and Sphinx style)."""

import inspect
import re

_SECTIONS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "attributes", "fields")
_GOOGLE_HEAD = re.compile(r"^([A-Z][A-Za-z ]*):$")
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\((.*?)\))?\s*:(?:\s+(.*)|)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::\s*(.*))?$")
_SPHINX_ENTRY = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:(\S.*?)\s+)?\*{0,2}(\w+):\s*(.*)$")
_SPHINX_TYPE = re.compile(r"^:type\s+(\w+):\s*(.*)$")


def first_paragraph(docstring):
    """The first paragraph on one line; None where there is none."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring or "")):
        text = " ".join(paragraph.split())
        if text:
            return text
    return None


def parameters(docstring):
    """Of each parameter that the docstring names: its type's text (or None) and its description (or None)."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    found = _sphinx(lines)
    for index, line in enumerate(lines):
        name = line.strip().rstrip(":").lower()
        if name not in _SECTIONS:
            continue
        if index + 1 < len(lines) and re.match(r"^\s*-{3,}\s*$", lines[index + 1]):
            found.update(_numpy(lines[index + 2 :], _indent(line)))
        elif line.strip().endswith(":"):
            found.update(_google(lines[index + 1 :], _indent(line)))
    return found


def _indent(line):
    return len(line) - len(line.lstrip())


def _google(lines, outer):
    found = {}
    inner = None
    current = None
    for line in lines:
        if not line.strip():
            continue
        depth = _indent(line)
        if depth <= outer:
            break
        inner = depth if inner is None else inner
        entry = _GOOGLE_ENTRY.match(line.strip()) if depth <= inner else None
        if entry:
            current = entry.group(1)
            found[current] = [entry.group(2), entry.group(3) or ""]
        elif current is not None:
            found[current][1] += " " + line.strip()
    return {name: (kind, " ".join(text.split()) or None) for name, (kind, text) in found.items()}


def _numpy(lines, outer):
    found = {}
    current = []
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.strip() and re.match(r"^\s*-{3,}\s*$", following):
            break
        if not line.strip():
            continue
        if _indent(line) > outer:
            for name in current:
                found[name][1] += " " + line.strip()
            continue
        entry = _NUMPY_ENTRY.match(line.strip())
        if not entry:
            break
        current = [name.strip() for name in entry.group(1).split(",")]
        for name in current:
            found[name] = [entry.group(2), ""]
    return {name: (kind, " ".join(text.split()) or None) for name, (kind, text) in found.items()}


def _sphinx(lines):
    found = {}
    current = None
    for line in lines:
        text = line.strip()
        entry = _SPHINX_ENTRY.match(text)
        kind = _SPHINX_TYPE.match(text)
        if entry:
            current = entry.group(2)
            found[current] = [entry.group(1), entry.group(3)]
        elif kind:
            found.setdefault(kind.group(1), [None, ""])[0] = kind.group(2)
            current = None
        elif text.startswith(":") or not text:
            current = None
        elif current is not None:
            found[current][1] += " " + text
    return {name: (kind, " ".join(words.split()) or None) for name, (kind, words) in found.items()}
