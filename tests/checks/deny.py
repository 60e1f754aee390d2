#!/usr/bin/env python3
"""Runs a program to which the kernel refuses system calls, as containers and security modules do.

    tests/checks/deny.py [CALL=ERROR …] -- PROGRAM [ARGUMENT …]
    tests/checks/deny.py --profile FILE -- PROGRAM [ARGUMENT …]

`namespaces=EPERM` refuses `clone` where it asks for a new namespace, and lets it make processes and threads. A profile is
a container engine's JSON: an allow-list, whose numbers are asked of the C compiler's headers. The filter stays with
everything that the program starts.
"""

import ctypes
import errno
import json
import os
import pathlib
import platform
import re
import struct
import subprocess
import sys

# linux/audit.h and the tables of system calls.
ARCHITECTURES = {
    "x86_64": (0xC000003E, {"clone": 56, "mount": 165, "umount2": 166, "pivot_root": 155, "unshare": 272, "setns": 308}),
    "aarch64": (0xC00000B7, {"clone": 220, "mount": 40, "umount2": 39, "pivot_root": 41, "unshare": 97, "setns": 268}),
}
COMMON = {
    "seccomp": {"x86_64": 317, "aarch64": 277},
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "clone3": 435,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
}
NAMESPACES = 0x7E020000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16


def number(call: str, machine: str) -> int:
    """The number of a system call on this machine."""
    found = ARCHITECTURES[machine][1].get(call, COMMON.get(call))
    found = found[machine] if isinstance(found, dict) else found
    if found is None:
        sys.exit(f"the system call `{call}` is not known here")
    return found


def refusing(rules: list[tuple[str, int]], machine: str) -> list[tuple[int, int, int, int]]:
    """Instructions that refuse these calls and let all others pass."""
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, ARCHITECTURES[machine][0]), (RETURN, 0, 0, ALLOW)]
    for call, error in rules:
        code.append((LOAD, 0, 0, NUMBER))
        if call == "namespaces":
            code += [(EQUAL, 0, 3, number("clone", machine)), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, NAMESPACES)]
        else:
            code.append((EQUAL, 0, 1, number(call, machine)))
        code.append((RETURN, 0, 0, REFUSE | error))
    return [*code, (RETURN, 0, 0, ALLOW)]


def following(profile: dict, machine: str) -> list[tuple[int, int, int, int]]:
    """Instructions that let pass what the profile allows, and refuse all others as it says."""
    headers = subprocess.run(
        ["cc", "-dM", "-E", "-"], input="#include <sys/syscall.h>", capture_output=True, text=True, check=True
    ).stdout
    numbers = {name: int(value) for name, value in re.findall(r"^#define __NR_(\w+) (\d+)$", headers, re.M)}
    refuse = (RETURN, 0, 0, REFUSE | profile["defaultErrnoRet"])
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, ARCHITECTURES[machine][0]), refuse]
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ALLOW", rule
        checks = []
        for argument in rule.get("args", []):
            assert argument["op"] == "SCMP_CMP_EQ", rule
            # Every value in use fits the lower half.
            checks.append((LOAD, 0, 0, FIRST_ARGUMENT + 8 * argument["index"]))
            checks.append((EQUAL, 0, 2 * (len(rule["args"]) - len(checks) // 2 - 1) + 1, argument["value"]))
        # Headers that are older than the profile lack some.
        for call in filter(numbers.__contains__, rule["names"]):
            code += [(LOAD, 0, 0, NUMBER), (EQUAL, 0, len(checks) + 1, numbers[call]), *checks, (RETURN, 0, 0, ALLOW)]
    return [*code, refuse]


def install(code: list[tuple[int, int, int, int]]) -> None:
    """Installs the filter in this process."""
    filter_ = b"".join(struct.pack("HBBI", *instruction) for instruction in code)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    described = Program(len(filter_) // 8, filter_)
    for arguments in [
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0),
    ]:
        if prctl(*arguments) != 0:
            sys.exit(f"the filter can't be installed: {os.strerror(ctypes.get_errno())}")


def main() -> None:
    """Reads the command line."""
    if "--" not in sys.argv:
        sys.exit(__doc__)
    at = sys.argv.index("--")
    given, command = sys.argv[1:at], sys.argv[at + 1 :]
    if given[:1] == ["--profile"]:
        install(following(json.loads(pathlib.Path(given[1]).read_text()), platform.machine()))
    else:
        rules = [rule.split("=") for rule in given]
        install(refusing([(call, getattr(errno, error)) for call, error in rules], platform.machine()))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
