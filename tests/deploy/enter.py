"""Starts a program as a container engine would: `enter.py SPECIFICATION [exec]`, in fresh namespaces of mounts and
processes. With `exec` the mounts exist already: the namespaces are those of a running container."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

NO_NEW_PRIVILEGES = 38


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def attach(root, source, target, readonly):
    """Binds a file or a folder; a missing target is created, as engines do."""
    target = pathlib.Path(f"{root}{target}")
    if pathlib.Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--bind", source, target)
    if readonly:
        mount("-o", "remount,bind,ro", target)


def prepare(specification):
    root = specification["root"].rstrip("/")
    if root:
        mount("--bind", root, root)
    for target in specification["temporary"]:
        pathlib.Path(f"{root}{target}").mkdir(parents=True, exist_ok=True)
        mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{root}{target}")
    for source, target, readonly in specification["mounts"]:
        attach(root, source, target, readonly)
    for folder in ("proc", "dev"):
        pathlib.Path(f"{root}/{folder}").mkdir(exist_ok=True)
    mount("-t", "proc", "proc", f"{root}/proc")
    if root:
        mount("--bind", "/dev", f"{root}/dev")
        mount("-o", "remount,bind,ro", root)


def main():
    specification = json.loads(pathlib.Path(sys.argv[1]).read_text())
    if "exec" not in sys.argv[2:]:
        prepare(specification)
    arguments, environment = specification["arguments"], specification["environment"]
    os.chroot(specification["root"])
    os.chdir(specification["working_folder"])
    os.umask(0o022)
    user, group, *more = specification["user"]
    os.setgroups(more)
    os.setresgid(group, group, group)
    # The kernel drops all capabilities with the user.
    os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for folder in environment["PATH"].split(":"):
        program = f"{folder}/{arguments[0]}" if "/" not in arguments[0] else arguments[0]
        if os.access(program, os.X_OK):
            os.execve(program, arguments, environment)
    sys.exit(f"{arguments[0]} is not in {environment['PATH']}")


main()
