"""What faults are tried on: makes one call a line of its input and says how it went, by the C library's own names."""
import ctypes
import errno
import os
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NOWAIT = 8


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def vectors(*buffers):
    return (Vector * len(buffers))(*[Vector(ctypes.cast(one, ctypes.c_void_p), len(one)) for one in buffers])


def call(name, *arguments):
    function = getattr(LIBC, name)
    function.restype = ctypes.c_ssize_t if "read" in name or "write" in name else ctypes.c_int
    ctypes.set_errno(0)
    started = time.monotonic()
    result = function(*arguments)
    code = ctypes.get_errno() if result == -1 else 0
    return result, errno.errorcode.get(code, ""), round(time.monotonic() - started, 2)


def bits_wrong(data):
    return sum(bin(octet ^ 0x55).count("1") for octet in data)


def main():
    directory = os.open(sys.argv[1], os.O_RDONLY)
    fd = os.open(sys.argv[1] + "/old", os.O_RDWR | os.O_CREAT)
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        first, second = (ctypes.create_string_buffer(b"U" * 600, 600) for _ in range(2))
        plain, place = ctypes.cast(first, ctypes.c_void_p), ctypes.c_int64(0)
        arguments = {
            "openat": (directory, b"new", os.O_RDWR | os.O_CREAT, 0o600), "open": (sys.argv[1].encode() + b"/old", os.O_RDWR),
            "read": (fd, plain, 1200 // 2), "pread": (fd, plain, 600, place), "preadv2": (fd, vectors(first, second), 2, place, 0),
            "preadv2-nowait": (fd, vectors(first, second), 2, place, NOWAIT),
            "write": (fd, plain, 600), "pwritev": (fd, vectors(first, second), 2, place), "fsync": (fd,), "fdatasync": (fd,),
            "fallocate": (fd, 1, place, ctypes.c_int64(4096)), "ftruncate": (fd, ctypes.c_int64(1200)),
            "unlinkat": (directory, b"new", 0), "mkdirat": (directory, b"sub", 0o700),
            "renameat": (directory, b"new", directory, b"newer"), "flock": (fd, 2),
        }[name]
        result, code, seconds = call(name.partition("-")[0], *arguments)
        print(result, code or "-", seconds, bits_wrong(first.raw + second.raw), flush=True)


main()
