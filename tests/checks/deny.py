#!/usr/bin/env python3
"""Runs a program to which the kernel refuses system calls, as containers and security modules do.

    tests/checks/deny.py [CALL=ERROR …] -- PROGRAM [ARGUMENT …]

`namespaces=EPERM` refuses `clone` where it asks for a new namespace, and lets it make processes and threads. The filter
stays with everything that the program starts.
"""

import ctypes
import errno
import os
import platform
import struct
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


def program(rules: list[tuple[str, int]]) -> bytes:
    """The filter in the kernel's own instructions."""
    machine = platform.machine()
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, ARCHITECTURES[machine][0]), (RETURN, 0, 0, ALLOW)]
    for call, error in rules:
        code.append((LOAD, 0, 0, NUMBER))
        if call == "namespaces":
            code += [(EQUAL, 0, 3, number("clone", machine)), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, NAMESPACES)]
        else:
            code.append((EQUAL, 0, 1, number(call, machine)))
        code.append((RETURN, 0, 0, REFUSE | error))
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def install(filter_: bytes) -> None:
    """Installs the filter in this process."""

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
    rules = [rule.split("=") for rule in sys.argv[1:at]]
    command = sys.argv[at + 1 :]
    install(program([(call, getattr(errno, error)) for call, error in rules]))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
