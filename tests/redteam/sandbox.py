"""What a server can do in `--isolate bwrap`: the table of the threat model, as root (where this runs as root) and
as a normal user. A probe prints `held`, or how it got out."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from common import SERVER, environment, processes_with, scratch, write

USER = 65534
PYTHON = "/usr/bin/python3"

# The tool runs a piece of Python; its last line is the answer.
RUNS = SERVER + """
import contextlib, io
def answer(method, params):
    if method != "tools/call":
        return {"tools": []}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(params["arguments"]["code"], {})
        except BaseException as error:
            print("held", type(error).__name__, error)
    return {"content": [{"type": "text", "text": said.getvalue()}]}
serve(answer)
"""

PRELUDE = """
import ctypes, errno, os, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
def call(on_x86, elsewhere, *arguments):
    ended = libc.syscall(on_x86 if x86 else elsewhere, *arguments)
    print("OUT" if ended >= 0 else "held", ended, errno.errorcode.get(ctypes.get_errno()))
def readable(*paths):
    found = [path for path in paths if os.path.exists(path) and open(path, "rb").read(1)]
    print("OUT" if found else "held", found)
def unwritable(*paths):
    got = []
    for path in paths:
        try:
            open(path, "a").write("x")
            got.append(path)
        except OSError:
            pass
    print("OUT" if got else "held", got)
"""

# `{home}`, `{work}`, `{elsewhere}`, `{port}` and `{pid}` are filled in. Each must answer `held`.
PROBES = {
    "read the home": "readable('{home}/.ssh/id_ed25519', '{home}/notes')",
    "read it by /proc/1/root": "readable('/proc/1/root{home}/.ssh/id_ed25519', '/proc/{pid}/root{home}/.ssh/id_ed25519')",
    "read files of others": "readable('{elsewhere}/secret')",
    "read shadow files": "readable('/etc/shadow', '/etc/shadow-', '/etc/gshadow', '/etc/gshadow-', '/etc/sudoers')",
    "read keys of the machine": "readable('/etc/ssh/ssh_host_ed25519_key', '/etc/ssl/private/ssl-cert-snakeoil.key', '/etc/machine-id')",
    "list what is elsewhere": "print('OUT' if any(os.path.exists(p) for p in ('/var/lib', '/var/log', '/boot', '/srv', '/mnt', '/sys/fs', '/root/.bashrc')) else 'held')",
    "write to the working folder": "unwritable('data', 'new')",
    "write to the system": "unwritable('/usr/x', '/etc/passwd', '/etc/x', '/bin/x', '/x', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger')",
    "write to cgroups": "unwritable('/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/pids/tasks', '/sys/fs/cgroup/x')",
    "use a descriptor of the shell": "print('OUT', os.listdir(9))",
    "see variables": "print('OUT' if 'KARAT_REDTEAM_SECRET' in os.environ else 'held')",
    "see variables of parents": "print('OUT' if any(b'KARAT_REDTEAM_SECRET' in open(f'/proc/{p}/environ','rb').read() for p in os.listdir('/proc') if p.isdigit() and os.access(f'/proc/{p}/environ', os.R_OK)) else 'held')",
    "see processes of the machine": "n = [p for p in os.listdir('/proc') if p.isdigit()]; print('OUT' if len(n) > 8 else 'held', n)",
    "signal Karat": "os.kill({pid}, 0); print('OUT')",
    "ptrace": "call(101, 117, 16, {pid}, 0, 0)",
    "read memory of others": "call(310, 270, 1, 0, 0, 0, 0, 0)",
    "new user namespace": "call(272, 97, 0x10000000)",
    "new mount namespace": "call(272, 97, 0x00020000)",
    "user namespace by clone": "call(56, 220, 0x10000000 | 17, 0, 0, 0, 0)",
    "enter a namespace": "fd = os.open('/proc/1/ns/mnt', os.O_RDONLY); call(308, 268, fd, 0)",
    "mount": "call(165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)",
    "mount by fsopen": "call(430, 430, b'tmpfs', 0)",
    "open_tree": "call(428, 428, -100, b'/', 1)",
    "umount": "call(166, 39, b'/proc', 2)",
    "pivot_root": "call(155, 41, b'/', b'/tmp')",
    "chroot": "os.chroot('/tmp'); print('OUT')",
    "keyctl": "call(250, 219, 0, -3, 0)",
    "add_key": "call(248, 217, b'user', b'k', b'v', 1, -3)",
    "request_key": "call(249, 218, b'user', b'karat', 0, 0)",
    "io_uring": "call(425, 425, 8, ctypes.create_string_buffer(256))",
    "bpf": "call(321, 280, 0, ctypes.create_string_buffer(128), 128)",
    "perf_event_open": "call(298, 241, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    "userfaultfd": "call(323, 282, 0)",
    "open_by_handle_at": "call(304, 265, -100, ctypes.create_string_buffer(128), 0)",
    "load a kernel module": "call(175, 105, ctypes.create_string_buffer(16), 16, b'')",
    "kexec": "call(246, 104, 0, 0, 0, 0)",
    "set the clock": "call(227, 112, 0, ctypes.create_string_buffer(16))",
    "make a device": "os.mknod('/tmp/d', 0o20666, os.makedev(1, 1)); open('/tmp/d', 'rb').read(1); print('OUT')",
    "vsock": "socket.socket(40, socket.SOCK_STREAM); print('OUT')",
    "raw packets": "socket.socket(17, socket.SOCK_RAW, 768); print('OUT')",
    "127.0.0.1 of the machine": "socket.create_connection(('127.0.0.1', {port}), 2); print('OUT')",
    "the internet": "socket.create_connection(('192.0.2.1', 80), 1); print('OUT')",
    "abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0karat-redteam-{pid}'); print('OUT')",
    "socket in the working folder": "socket.socket(socket.AF_UNIX).connect('socket'); print('OUT')",
    "socket elsewhere": "socket.socket(socket.AF_UNIX).connect('{elsewhere}/socket'); print('OUT')",
    "pipe in the working folder": "os.open('pipe', os.O_WRONLY | os.O_NONBLOCK); print('OUT')",
    "socket of Docker": "socket.socket(socket.AF_UNIX).connect('/run/docker.sock'); print('OUT')",
    "more memory": "resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40)); print('OUT')",
    "more processes": "soft, hard = resource.getrlimit(resource.RLIMIT_NPROC); resource.setrlimit(resource.RLIMIT_NPROC, (resource.RLIM_INFINITY,) * 2); print('OUT' if hard != -1 else 'held')",
    "a child with rights": "import subprocess; got = subprocess.run(['/bin/su', '-c', 'id'], capture_output=True, stdin=subprocess.DEVNULL); print('OUT' if got.returncode == 0 else 'held')",
    "gain capabilities": "eff = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapPrm', 'CapBnd'))]; print('OUT' if any(int(e, 16) for e in eff) else 'held', eff)",
    "no_new_privs off": "print('held' if 'NoNewPrivs:\\t1' in open('/proc/self/status').read() else 'OUT')",
    "seccomp off": "print('held' if 'Seccomp:\\t2' in open('/proc/self/status').read() else 'OUT')",
}

# Under `--limit memory=64m,processes=64,file=50m`; each must stay below.
LIMITS = {
    "allocate 512 MB": "x = bytearray(512 << 20); print('OUT')",
    "a file of 200 MB": "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nwith open('/tmp/f', 'wb') as f:\n for _ in range(200): f.write(bytes(1 << 20))\nprint('OUT')",
    "fill /tmp": "n = 0\ntry:\n for i in range(40):\n  with open(f'/tmp/f{i}', 'wb') as f: f.write(bytes(20 << 20)); n += 20\nexcept (OSError, MemoryError): pass\nprint('OUT' if n > 128 else 'held', n)",
    "fork 300 times": """
n = 0
try:
    for _ in range(300):
        if os.fork() == 0:
            time.sleep(5); os._exit(0)
        n += 1
except OSError: pass
print('OUT' if n > 64 else 'held', n)""",
}  # fmt: skip


# Without a sandbox these get out; if not, they prove nothing.
CONTROLS = (
    "read the home", "read files of others", "write to the working folder", "see variables", "see processes of the machine",
    "signal Karat", "127.0.0.1 of the machine", "abstract socket", "socket in the working folder", "socket elsewhere",
    "pipe in the working folder", "seccomp off",
)  # fmt: skip


def ask(team, folder, home, code, limits, user, engine="bwrap"):
    """The answer to a piece of Python in the sandbox."""
    words = ["server", "call", "--isolate", engine, *limits, "--tool", "run", "--input", json.dumps({"code": code})]
    words += ["--", PYTHON, "server.py"]
    # A shell leaves a folder open, as those with locks do.
    shell = ["/bin/sh", "-c", 'exec 9<"$HOME"; exec "$0" "$@"']
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if user else []
    env = {"HOME": home, "KARAT_REDTEAM_SECRET": "zq8Kd93kfjqLLw02x", "XDG_RUNTIME_DIR": home}
    program = pathlib.Path(folder).parent / "karat"
    ran = team.run(words, folder, env=env, program=[*become, *shell, str(program)])
    try:
        return ran, json.loads(ran.out)["content"][0]["text"].strip().splitlines()[-1]
    except (ValueError, LookupError):
        return ran, None


def table(team, name, user):
    area = team.area(name)
    with scratch() as base:
        home, work, elsewhere = (str(pathlib.Path(base, part)) for part in ("home", "work", "elsewhere"))
        write(base, {"home/.ssh/id_ed25519": "PRIVATE", "home/notes": "notes", "elsewhere/secret": "secret"})
        write(base, {"work/server.py": RUNS, "work/data": "data"})
        shutil.copy(team.karat, pathlib.Path(base, "karat"))
        os.mkfifo(pathlib.Path(work, "pipe"))
        listening = []
        for address in (f"{work}/socket", f"{elsewhere}/socket", f"\0karat-redteam-{os.getpid()}"):
            listening.append(socket.socket(socket.AF_UNIX))
            listening[-1].bind(address)
        listening.append(socket.create_server(("127.0.0.1", 0)))
        port = listening[-1].getsockname()[1]
        for one in listening:
            one.listen()
        # Someone reads the pipe, so that it could be written to.
        reader = os.open(pathlib.Path(work, "pipe"), os.O_RDONLY | os.O_NONBLOCK)
        if user:
            subprocess.run(["chown", "-R", f"{USER}:{USER}", base], check=True)
        os.chmod(base, 0o755)
        places = {"home": home, "work": work, "elsewhere": elsewhere, "port": port, "pid": os.getpid()}
        for what, code in PROBES.items():
            for key, value in places.items():
                code = code.replace("{%s}" % key, str(value))
            ran, said = ask(team, work, home, PRELUDE + code, [], user)
            area.attempt(said is not None and said.startswith("held"), f"{what}: {said} {ran if said is None else ''}")
            # Without isolation a user cannot signal root, whose process this is.
            if what in CONTROLS and not (user and what == "signal Karat"):
                ran, said = ask(team, work, home, PRELUDE + code, [], user, engine="none")
                area.attempt(said is not None and said.startswith("OUT"), f"{what} does not get out without a sandbox: {said} {ran}")
                write(work, {"data": "data"})
                pathlib.Path(work, "new").unlink(missing_ok=True)
        bounds = ["--limit", "memory=64m,processes=64,file=50m"]
        for what, code in LIMITS.items():
            ran, said = ask(team, work, home, PRELUDE + code, bounds, user)
            # A server that is ended at its limit gives no answer.
            held = said is None and ran.code == 3 or said is not None and said.startswith("held")
            area.attempt(held, f"{what}: {said} {ran}")
        area.attempt(pathlib.Path(work, "data").read_text() == "data" and not pathlib.Path(work, "new").exists(), "the working folder was changed")
        for one in listening:
            one.close()
        os.close(reader)


def left_over(team):
    """Nothing outlives Karat."""
    area = team.area("programs that try to outlive Karat")
    mark = f"karat-redteam-mark-{os.getpid()}"
    code = f"""
import os, subprocess, sys, time
def twice(how):
    if os.fork() == 0:
        how()
        if os.fork() == 0:
            os.execvp("python3", ["python3", "-c", "import time; time.sleep(300)", "{mark}"])
        os._exit(0)
    os.wait()
twice(os.setsid)
group = os.getpgid(os.getppid())
twice(lambda: os.setpgid(0, group))
subprocess.Popen(["python3", "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)", "{mark}"])
open("started", "w").close()
time.sleep(300)
"""
    for ending in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for _ in range(team.times(2, 20)):
            with scratch() as folder:
                write(folder, {"server.py": code})
                process = subprocess.Popen(
                    [team.karat, "server", "lint", "--", "python3", "server.py"], cwd=folder, env=environment(),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline and not (pathlib.Path(folder, "started").exists() and len(processes_with(mark)) >= 3):
                    time.sleep(0.02)
                started = len(processes_with(mark))
                process.send_signal(ending)
                process.wait()
                deadline = time.monotonic() + 15
                while processes_with(mark) and time.monotonic() < deadline:
                    time.sleep(0.02)
                area.attempt(started >= 3 and not processes_with(mark), f"{ending.name}: {started} started, left {processes_with(mark)}")
                for pid in processes_with(mark):
                    os.kill(pid, signal.SIGKILL)


def run(team):
    if os.getuid() == 0:
        table(team, "sandbox as root", user=False)
        table(team, "sandbox as a normal user", user=True)
    else:
        table(team, "sandbox as a normal user", user=False)
        print("the sandbox as root is tried where this runs as root")
    left_over(team)
