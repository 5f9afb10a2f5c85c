"""A process that makes the cases of one mode: `worker.py MODE SEED FIRST LAST PROGRESS`.

It writes the number of the case that it is at into the file PROGRESS, what it finds as lines of JSON to its output, and
after the last case the digests of the results. The process that started it watches it.
"""

import collections
import json
import mmap
import random
import resource
import signal
import struct
import sys
import warnings

import modes

MEMORY = 6 << 30
#: Bytes of the file PROGRESS: the number of the case, and the call that it makes.
ROOM = 1024


class Told(dict):
    """What a case says of itself, kept where it outlives the process."""

    def __init__(self, place, number):
        super().__init__(case=number)
        self.place = place
        struct.pack_into("q", place, 0, number)
        place[8:] = bytes(ROOM - 8)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        text = str(value).encode()[: ROOM - 8]
        self.place[8 : 8 + len(text)] = text


def run(mode, seed, first, last, progress):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    # A process that a shell starts in the background ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(progress, "r+b") as file:
        place = mmap.mmap(file.fileno(), ROOM)
    case = modes.MODES[mode]
    outcomes, digests = collections.Counter(), {}
    for number in range(first, last):
        rng = random.Random(f"{mode}:{seed}:{number}")
        told = Told(place, number)
        try:
            digest = case(rng, told)
            outcomes["raised" if digest in modes.EXCEPTIONS else "returned"] += 1
            digests[number] = (told.get("call", "")[:200], digest)
        except KeyboardInterrupt:
            outcomes["slow, but stopped at Ctrl-C"] += 1
            emit(slow=True, **told)
        except BaseException as error:
            emit(finding=f"{type(error).__name__}: {error}"[:1000], **told)
    emit(outcomes=outcomes, digests=digests if mode == "levels" else {})


def emit(**line):
    print(json.dumps(line, default=str), flush=True)


if __name__ == "__main__":
    mode, seed, first, last, progress = sys.argv[1:]
    run(mode, seed, int(first), int(last), progress)
