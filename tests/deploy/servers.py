"""The servers behind Tollgate, in place of their images: PostgreSQL without TLS, Valkey with a password, and an object
store with credentials and without a bucket."""

import os
import pathlib
import pwd
import shlex
import shutil
import socket
import sys

from containers import Container, run

NOBODY = (65534, 65534)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def accepts(address, port):
    """Returns the reason why no connection can be made, or none."""
    try:
        with socket.create_connection((address, port), timeout=2):
            return None
    except OSError as error:
        return f"{address}:{port}: {error}"


def program(*names):
    for name in names:
        if found := shutil.which(name):
            return found
    sys.exit(f"none of {', '.join(names)} is installed")


def postgres(name, network, folder, variables):
    """Starts a server as the entry point of PostgreSQL's image does, by the variables of that image."""
    versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    programs = versions[-1]
    try:
        user = tuple(pwd.getpwnam("postgres")[2:4])
    except KeyError:
        user = NOBODY
    data, password = folder / "pgdata", folder / "pgpassword"
    data.mkdir()
    password.write_text(variables["POSTGRES_PASSWORD"])
    for path in (data, password):
        os.chown(path, *user)
    database, owner = variables["POSTGRES_DB"], variables["POSTGRES_USER"]
    options = shlex.split(variables.get("POSTGRES_INITDB_ARGS", ""))
    initialise = [programs / "initdb", "-D", data, "--username", owner, "--pwfile", password, "--no-sync", *options]
    run(*initialise, user=user[0], group=user[1], cwd=data)
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all all scram-sha-256\n")
    settings = ["listen_addresses=*", f"unix_socket_directories={data}", "ssl=off", "fsync=off"]
    arguments = ["postgres", "-D", str(data), *(word for setting in settings for word in ("-c", setting))]
    environment = {"PATH": f"{programs}:{PATH}"}
    server = Container(name, network, folder, root="/", user=user, environment=environment, arguments=arguments)
    server.wait_until_healthy(["pg_isready", "--host", str(data), "--username", owner, "--dbname", "postgres"])
    server.execute("createdb", "--host", str(data), "--username", owner, database)
    return server


def valkey(name, network, folder, arguments, mounts=(), user=NOBODY):
    """Starts Valkey, or Redis under its name."""
    programs = folder / "valkey-programs"
    programs.mkdir()
    for part in ("server", "cli"):
        (programs / f"valkey-{part}").symlink_to(program(f"valkey-{part}", f"redis-{part}"))
    environment = {"PATH": f"{programs}:{PATH}"}
    specification = {"root": "/", "temporary": ["/run"], "mounts": list(mounts), "user": user}
    return Container(name, network, folder, environment=environment, arguments=list(arguments), **specification)


def object_store(name, network, folder, binary, port, access_key_id, secret_access_key):
    """Starts the object store of the tests: it checks signatures and has no bucket yet."""
    buckets = folder / "buckets"
    buckets.mkdir()
    os.chown(buckets, *NOBODY)
    arguments = [str(binary), f"0.0.0.0:{port}", str(buckets), access_key_id, secret_access_key]
    server = Container(
        name, network, folder, root="/", user=NOBODY, environment={"PATH": PATH}, arguments=arguments
    )
    server.wait_until_healthy(lambda: accepts(server.address, port))
    return server


def require_object(folder, prefix):
    """The promoted document is an object of the bucket that the stack has created."""
    found = [path for path in (folder / "buckets" / prefix / "documents").rglob("*") if path.is_file()]
    if len(found) != 1:
        sys.exit(f"{prefix}: {len(found)} documents in the bucket")


def require_counts(server, password):
    """The rate of the key is counted in Valkey."""
    answer = server.execute("sh", "-c", f"REDISCLI_AUTH={shlex.quote(password)} valkey-cli --raw keys '*'").stdout
    if "tollgate:rates:" not in answer:
        sys.exit(f"no rate is counted in Valkey: {answer!r}")
