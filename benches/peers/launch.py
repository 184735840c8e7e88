"""Runs one command and reports what it used: `launch.py STDOUT STDERR COMMAND...`.

Prints the exit status, CPU seconds (user + system), the peak of resident memory as the system
counts it, and elapsed seconds. It imports as little as it can, because Linux starts a program's
peak at the memory of the process that forked it: from here that is some 5 MB, from the main
program it would be several times as much.
"""

import os
import sys
import time

stdout, stderr, *command = sys.argv[1:]
began = time.monotonic()
child = os.fork()
if child == 0:
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(stdout, flags, 0o644), 1)
        os.dup2(os.open(stderr, flags, 0o644), 2)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error}\n".encode())
    finally:
        os._exit(127)
_, status, used = os.wait4(child, 0)
elapsed = time.monotonic() - began
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss, elapsed)
