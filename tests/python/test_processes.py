"""Tests of subinterpreters, forks, and the exit of the process."""

import os
import subprocess
import sys

import pytest

import minitensor as mt

SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys
{before}
interpreter = interpreters.create()
code = '''
try:
    import minitensor
except ImportError as error:
    import os
    os.write(1, (str(error)[:44] + "\\\\n").encode())
'''
interpreters.run_string(interpreter, code)
import minitensor as mt
print(mt.ones(3).sum().item())
"""


@pytest.mark.parametrize("before", ["", "import minitensor"])
def test_import_fails_in_a_subinterpreter_and_works_in_the_main_one(before):
    run = [sys.executable, "-c", SUBINTERPRETER.format(before=before)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.stdout == "minitensor cannot be imported in a subinterp\n"[:44] + "\n3.0\n", done.stderr


FORK_INSIDE = """
import os, threading, time, warnings
import minitensor as mt

warnings.simplefilter("ignore")
inside, done = threading.Event(), threading.Event()

def hook(g):
    inside.set()
    done.wait()

x = mt.ones(4, requires_grad=True)
y = x * 2
y.register_hook(hook)
thread = threading.Thread(target=y.sum().backward)
thread.start()
inside.wait()
pid = os.fork()
if pid == 0:
    # The other thread isn't there: nothing waits for it.
    begun = time.monotonic()
    mt._minitensor._shut_down()
    os._exit(7 if time.monotonic() - begun < 10 else 8)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
done.set()
thread.join()
print(code, x.grad.tolist())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent():
    done = subprocess.run([sys.executable, "-c", FORK_INSIDE], capture_output=True, text=True)
    assert done.stdout == "7 [2.0, 2.0, 2.0, 2.0]\n", done.stderr


def exits_silently(code: str) -> None:
    """Asserts that a process succeeds without errors or warnings."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


# After it has begun to shut down, Python waits here. Meanwhile, it ends each other thread that requests the GIL.
SLOW_EXIT = """
import sys, time, types

class Slow:
    def __del__(self, sleep=time.sleep):
        for _ in range(60):
            sleep(0.01)

# Python frees the contents of this module, but not those of a module whose functions a thread runs.
sys.modules["slow"] = types.ModuleType("slow")
sys.modules["slow"].slow = Slow()
"""

AT_EXIT = """
import sys, threading
import minitensor as mt

sys.setswitchinterval(1e-5)
started = threading.Event()

def work():
    x = mt.ones({n}, requires_grad=True)

    def hook(g):
        started.set()
        for _ in range(20_000):
            pass
        return g

    while True:
        y = x * 2
        y.register_hook(hook)
        (y * y).sum().backward()

threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("n", [4, 1 << 18])
def test_a_daemon_thread_in_a_backward_pass_ends_with_the_process(n):
    exits_silently(AT_EXIT.format(n=n) + SLOW_EXIT)


CALLED_AT_EXIT = """
import threading, time
import minitensor as mt

inside = threading.Event()

# These are arguments, because the names of this module may be removed while the thread runs.
def pause(value, enter=inside.set, sleep=time.sleep):
    enter()
    sleep(0.2)
    return value

class Argument:
    def __index__(self):
        return pause(2)

class Array:
    def __getattr__(self, name):
        raise pause(AttributeError(name))

class Hook:
    def __call__(self, gradient):
        return gradient

    def __del__(self):
        pause(None)

def work():
    while True:
        try:
            {call}
        except TypeError:
            pass

threading.Thread(target=work, daemon=True).start()
inside.wait()
"""


@pytest.mark.parametrize(
    "call",
    [
        "mt.zeros(Argument())",
        "mt.ones(3)[Argument()]",
        "mt.ops.sum(mt.ones(1, 1, 1), Argument())",
        "mt.Tensor(Array())",
        "mt.ones(1, requires_grad=True).register_hook(Hook()).remove()",
    ],
)
def test_a_daemon_thread_in_python_code_that_a_function_calls_ends_with_the_process(call):
    exits_silently(CALLED_AT_EXIT.format(call=call) + SLOW_EXIT)


FORK = """
import os, sys, threading, warnings
import minitensor as mt

warnings.simplefilter("ignore")
sys.setswitchinterval(1e-6)
x = mt.ones(1 << 20, requires_grad=True)
(x * 2).sum().backward()
done = False

def register(k):
    while not done:
        mt.CustomOpBuilder(f"forked{k}", 1).forward(lambda a: a + 1).register()
        mt.unregister_custom_op_py(f"forked{k}")

def compute():
    while not done:
        mt.manual_seed(0)
        mt.rand(10)
        mt.ops.swish(x).sum().backward()

threads = [threading.Thread(target=register, args=(k,), daemon=True) for k in range(2)]
threads.append(threading.Thread(target=compute, daemon=True))
for thread in threads:
    thread.start()
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        y = mt.ones(1 << 20, requires_grad=True)
        mt.ops.swish(y).sum().backward()
        mt.rand(3)
        mt.ops.describe("swish")
        mt.plugins.list_plugins()
        os._exit(7 if y.grad.shape == (1 << 20,) else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
done = True
for thread in threads:
    thread.join()
print("survived")
"""


def ends(code: str, said: str, seconds: int) -> None:
    """Asserts that a process succeeds with this output."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds)
    assert (done.returncode, done.stdout) == (0, said), done.stderr[-3000:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_works_while_threads_of_the_parent_run():
    ends(FORK, said="survived\n", seconds=600)


HOOKS_OF_OTHERS = """
import os
import threading
import time

# Python runs these between the fork and the hooks of a module that is imported later, without the GIL.
os.register_at_fork(before=lambda: time.sleep(0.05), after_in_parent=lambda: time.sleep(0.05))

import minitensor as mt

stopped = threading.Event()


def look():
    while not stopped.is_set():
        mt.list_custom_ops_py()


thread = threading.Thread(target=look)
thread.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if "swish" in mt.list_custom_ops_py() else 1)
    assert os.waitpid(child, 0)[1] == 0
stopped.set()
thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_does_not_wait_for_a_thread_that_runs_between_hooks_of_others():
    ends(HOOKS_OF_OTHERS, said="done\n", seconds=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_ctrl_c_reaches_the_thread_that_forked():
    code = """
import os, signal, threading, minitensor as mt
signal.signal(signal.SIGINT, signal.default_int_handler)

def fork():
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            big = mt.ones(1).expand(1 << 13, 1 << 13)
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                mt.ops.matmul(big, big)
        except KeyboardInterrupt:
            code = 7
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

thread = threading.Thread(target=fork)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "7\n", done.stderr
    assert mt.ones(2).sum().item() == 2.0
