"""Each system call that changes or syncs files is recorded as what it did, and the recording replays to what stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.conformance.faults.recording import (
    ROOT,
    Changed,
    Event,
    Mapped,
    Named,
    Names,
    Sync,
    SyncAll,
    Truncate,
    Type,
    Unnamed,
    Write,
)
from tests.faults.tracer.traced import run, whole

pytestmark = pytest.mark.usefixtures("tracer")

MADE = Names((Named(b"a", 1),))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('fd = make("a", b"12345"); os.write(fd, b"67")', [Write(1, 0, b"12345"), Write(1, 5, b"67")]),
        ('fd = make("a", b"123"); os.pwrite(fd, b"x", 7)', [Write(1, 0, b"123"), Write(1, 7, b"x")]),
        (
            'fd = make("a", b"123", os.O_APPEND); os.lseek(fd, 0, 0); os.write(fd, b"4")',
            [Write(1, 0, b"123"), Write(1, 3, b"4")],
        ),
        ('fd = make("a", b"123", os.O_APPEND); os.pwrite(fd, b"4", 0)', [Write(1, 0, b"123"), Write(1, 3, b"4")]),
        ('os.writev(make("a"), [b"12", b"345"])', [Write(1, 0, b"12345")]),
        ('os.pwritev(make("a"), [b"12", b"345"], 3)', [Write(1, 3, b"12345")]),
        ('os.pwritev(make("a"), [b"12"], 3, os.RWF_DSYNC)', [Write(1, 3, b"12", durable=True)]),
        ('fd = make("a", b"123"); os.pwritev(fd, [b"4"], 0, 0x10)', [Write(1, 0, b"123"), Write(1, 3, b"4")]),
        ('os.write(make("a", flags=os.O_DSYNC), b"1")', [Write(1, 0, b"1", durable=True)]),
        ('os.write(make("a", flags=os.O_SYNC), b"1")', [Write(1, 0, b"1", durable=True)]),
        (
            'fd = make("a", b"12"); v = (ctypes.c_size_t * 2)(0, 1)\n'
            's = ctypes.create_string_buffer(b"9"); v[0] = ctypes.addressof(s); call(328, fd, v, 1, -1, -1, 0)',
            [Write(1, 0, b"12"), Write(1, 2, b"9")],
        ),
        ('fd = make("a", b"12345"); os.ftruncate(fd, 2)', [Write(1, 0, b"12345"), Truncate(1, 2)]),
        ('make("a", b"1"); os.truncate("a", 7)', [Write(1, 0, b"1"), Truncate(1, 7)]),
        ('make("a", b"12"); os.open("a", os.O_WRONLY | os.O_TRUNC)', [Write(1, 0, b"12"), Truncate(1, 0)]),
        ('fd = make("a"); os.posix_fallocate(fd, 0, 99)', [Truncate(1, 99)]),
        ('fd = make("a", b"1"); call(285, fd, 1, 0, 4096)', [Write(1, 0, b"1")]),
        ('fd = make("a", b"12345"); call(285, fd, 3, 1, 2)', [Write(1, 0, b"12345"), Write(1, 1, b"\0\0")]),
        (
            'fd = make("a", b"12345"); call(285, fd, 0x10, 3, 4)',
            [Write(1, 0, b"12345"), Truncate(1, 7), Write(1, 3, b"\0\0\0\0")],
        ),
        ('fd = make("a", b"1"); os.fsync(fd)', [Write(1, 0, b"1"), Sync(1)]),
        ('fd = make("a", b"1"); os.fdatasync(fd)', [Write(1, 0, b"1"), Sync(1, data_only=True)]),
        ('make("a"); os.fsync(os.open(".", 0))', [Sync(ROOT)]),
        ('make("a"); os.sync()', [SyncAll()]),
        ('call(306, make("a"))', [SyncAll()]),
        ('call(277, make("a"), 5, 6, 7)', [Sync(1, data_only=True, begin=5, end=11)]),
        ('call(277, make("a"), 0, 0, 2)', []),
        ('make("a"); os.rename("a", "b")', [Names((Unnamed(b"a", 1), Named(b"b", 1)))]),
        ('make("a"); os.link("a", "b"); os.unlink("a")', [Names((Named(b"b", 1),)), Names((Unnamed(b"a", 1),))]),
        ('make("a"); os.symlink("a", "l")', [Names((Named(b"l", 2, Type.LINK, b"a"),))]),
        ('make("a"); os.mkfifo("p")', [Names((Named(b"p", 2, Type.OTHER),))]),
        ('make("a"); socket.socket(socket.AF_UNIX).bind("s")', [Names((Named(b"s", 2, Type.OTHER),))]),
        (
            'make("a"); os.mkdir("d"); os.rmdir("d")',
            [Names((Named(b"d", 2, Type.DIRECTORY),)), Names((Unnamed(b"d", 2),))],
        ),
        (
            'make("a"); make("b"); os.rename("b", "a")',
            [Names((Named(b"b", 2),)), Names((Unnamed(b"b", 2), Unnamed(b"a", 1), Named(b"a", 2)))],
        ),
        (
            'make("a"); make("b"); call(316, -100, b"a", -100, b"b", 2)',
            [
                Names((Named(b"b", 2),)),
                Names((Unnamed(b"b", 2), Unnamed(b"a", 1), Named(b"a", 2), Named(b"b", 1))),
            ],
        ),
        (
            'fd = make("a"); os.unlink("a"); os.write(fd, b"1")',
            [Names((Unnamed(b"a", 1),)), Write(1, 0, b"1")],
        ),
    ],
)  # fmt: skip
def test_a_call(source: str, expected: list[object], tmp_path: Path) -> None:
    done = whole(source, tmp_path)
    assert done.actions == [MADE, *expected]


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("os.copy_file_range(a, b, 4)", Write(2, 0, b"abcd")),
        ("os.copy_file_range(a, b, 4, 1, 3)", Write(2, 3, b"bcde")),
        ("os.sendfile(b, a, 2, 3)", Write(2, 0, b"cde")),
        ('r, w = os.pipe(); os.write(w, b"xyz"); os.splice(r, b, 3, offset_dst=1)', Write(2, 1, b"xyz")),
    ],
)
def test_bytes_that_the_program_never_has(source: str, written: Write, tmp_path: Path) -> None:
    done = whole(f'a = make("a", b"abcdef"); b = make("b"); os.lseek(a, 0, 0)\n{source}', tmp_path)
    assert done.actions[-1] == written


def test_a_splice_waits_for_another_task(tmp_path: Path) -> None:
    # What it waits for comes before, and what comes after it is an operation of the same task.
    source = """
r, w = os.pipe()
b = make("b")
def late():
    time.sleep(0.1)
    os.write(w, b"late")
    make("c", b"meanwhile")
threading.Thread(target=late).start()
os.splice(r, b, 4)
"""
    done = whole(source, tmp_path)
    assert Write(1, 0, b"late") in done.actions


def test_a_file_made_without_a_name(tmp_path: Path) -> None:
    source = """
fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
os.write(fd, b"first")
call(265, -100, b"/proc/self/fd/%d" % fd, -100, b"a", 0x400)
"""
    done = whole(source, tmp_path)
    assert done.actions == [Write(1, 0, b"first"), MADE]


def test_an_inode_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    source = """
seen = set()
for each in range(50):
    os.close(make("a", b"1"))
    seen.add(os.stat("a").st_ino)
    os.unlink("a")
print(len(seen))
"""
    done = whole(source, tmp_path)
    numbers = [one.changes[0].file for one in done.actions if isinstance(one, Names)]
    assert sorted(set(numbers)) == list(range(1, 51))
    # Else this test tests nothing here.
    assert int(done.output) < 50


def test_from_outside_and_back(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "out").write_bytes(b"outside")
    (tmp_path / "folder/in").mkdir(parents=True)
    (tmp_path / "folder/in/x").write_bytes(b"x")
    source = """
os.fsync(os.open("../out", 0))
os.rename("../out", "a")
os.rename("a", "../out")
fd = os.open("../out", os.O_WRONLY | os.O_APPEND)
os.write(fd, b"!")
os.rename("../out", "b")
os.write(fd, b"?")
os.rename("../folder", "f")
os.rename("f", "g")
os.rename("g", "../folder")
"""
    done = whole(source, tmp_path)
    assert done.actions[:6] == [
        Write(1, 0, b"outside", durable=True),
        Names((Named(b"a", 1),)),
        Names((Unnamed(b"a", 1),)),
        Write(2, 0, b"outside!"),
        Names((Named(b"b", 2),)),
        Write(2, 8, b"?"),
    ]
    assert done.actions[-1] == Names((Unnamed(b"g/in/x", 5), Unnamed(b"g/in", 4), Unnamed(b"g", 3)))


def test_what_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "work/d").mkdir(parents=True)
    (tmp_path / "work/d/a").write_bytes(b"old")
    (tmp_path / "work/b").hardlink_to(tmp_path / "work/d/a")
    (tmp_path / "work/l").symlink_to("b")
    done = whole('os.truncate("l", 1); os.open("l", os.O_CREAT | os.O_TRUNC | os.O_RDWR)', tmp_path)
    linked = next(one for one in done.recording.snapshot if one.type is Type.FILE)
    assert (set(linked.names), linked.data) == ({b"b", b"d/a"}, b"old")
    assert done.actions == [Truncate(linked.file, 1), Truncate(linked.file, 0)]


def test_paths_of_all_kinds(tmp_path: Path) -> None:
    source = """
os.mkdir("d"); d = os.open("d", 0)
os.close(os.open("x", os.O_CREAT, dir_fd=d))
os.symlink("d", "l")
os.rename("l/x", os.path.abspath("l/../y"))
os.chdir("l"); os.mkdir("../d/../d/z/")
os.rename("z", "w", src_dir_fd=d, dst_dir_fd=os.open("..", 0))
make("/dev/fd/%d/k" % d)
for wrong in (lambda: os.mkdir("../y"), lambda: os.unlink("no"), lambda: os.rename("no", "y"), lambda: os.rmdir("..")):
    try: wrong()
    except OSError: pass
"""
    done = whole(source, tmp_path)
    assert {name.name for name in done.workdir.iterdir()} == {"d", "l", "y", "w"}
    assert len(done.actions) == 7


def test_maps_are_compared_at_operations_and_events(tmp_path: Path) -> None:
    source = """
fd = make("a", bytes(8192))
m = mmap.mmap(fd, 8192)
m[5000:5003] = b"abc"
os.write(1, b"said")
m[0] = 1
m.flush(4096, 4096)
m[1] = 2
m.close(); os.close(fd)
"""
    done = whole(source, tmp_path)
    seen = [one.action for one in done.recording.operations][2:]
    first, event, second, sync, third = seen
    assert isinstance(first, Mapped)
    assert (first.offset, first.data) == (4608, bytes(392) + b"abc" + bytes(117))
    assert isinstance(event, Event)
    assert (event.size, done.output) == (4, b"said")
    assert second == Mapped(1, 0, b"\x01" + bytes(511))
    assert sync == Sync(1, data_only=True, begin=4096, end=8192)
    assert third == Mapped(1, 0, b"\x01\x02" + bytes(510))


def test_events_go_out_by_every_way(tmp_path: Path) -> None:
    source = """
a, b = socket.socketpair()
a.send(b"1"); a.sendmsg([b"2", b"3"]); os.write(a.fileno(), b"4"); os.writev(a.fileno(), [b"5", b"67"])
fd = make("a", b"12345678"); os.sendfile(a.fileno(), fd, 0, 8)
r, w = os.pipe(); os.splice(fd, w, 4, offset_src=0)
"""
    done = whole(source, tmp_path)
    events = [one.action for one in done.recording.operations if isinstance(one.action, Event)]
    assert [event.size for event in events] == [1, 2, 1, 3, 8, 4]
    assert [event.channel.split(":")[0] for event in events] == ["socket"] * 5 + ["pipe"]
    times = [one.at for one in done.recording.operations]
    assert times == sorted(times)


def test_calls_that_would_not_be_seen_are_refused(tmp_path: Path) -> None:
    source = """
for number, *args in ((425, 8, ctypes.create_string_buffer(120)), (206, 8, ctypes.byref(ctypes.c_long()))):
    try: call(number, *args)
    except OSError as error: assert error.errno == errno.ENOSYS, error
    else: sys.exit("not refused")
a, b = make("a", b"1"), make("b")
try: call(16, b, 0x40049409, a)
except OSError as error: assert error.errno == errno.EOPNOTSUPP, error
"""
    done = whole(source, tmp_path)
    assert done.recording.refused == ("io_uring_setup", "io_setup", "ioctl")


def test_calls_that_point_to_nowhere_fail_by_themselves(tmp_path: Path) -> None:
    # sendmsg, writev to a pipe and to a file, open, rename, openat2, bind, clone3.
    source = """
a, _ = socket.socketpair(); s = socket.socket(socket.AF_UNIX)
r, w = os.pipe()
fd = make("a")
for number, *args in ((46, a.fileno(), 8, 0), (20, w, 8, 2), (20, fd, 8, 2), (2, 8, 64, 0), (82, 8, 8),
                      (437, -100, 8, 8, 24), (49, s.fileno(), 8, 110), (435, 8, 88), (1, fd, 8, 9)):
    try: call(number, *args)
    except OSError as error: assert error.errno == errno.EFAULT, (number, error)
    else: sys.exit(f"{number} did not fail")
"""
    done = whole(source, tmp_path)
    assert done.actions == [MADE]


@pytest.mark.parametrize("number", [56, 435], ids=["clone", "clone3"])
def test_a_process_that_is_not_to_be_traced_is_told(number: int, tmp_path: Path) -> None:
    source = """
untraced = 0x00800000
flags = (ctypes.c_ulonglong * 11)(untraced, 0, 0, 0, 17)
child = call(56, untraced | 17, 0, 0, 0, 0) if {number} == 56 else call(435, ctypes.byref(flags), 88)
if not child:
    os._exit(0)
os.waitpid(child, 0)
"""
    done = run(source.replace("{number}", str(number)), tmp_path)
    assert done.status == 0, done.errors
    assert done.recording.ending.untraced == ("a process has started another that is not to be traced",)


def test_calls_of_another_architecture_are_told(tmp_path: Path) -> None:
    # getpid by the numbers of x32, which kernels without it answer with ENOSYS.
    done = run("try: call(0x40000000 + 39)\nexcept OSError: pass", tmp_path)
    assert done.recording.ending.untraced == ("calls of another architecture than x86-64",)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("os.chmod('a', 0o640)", (0o640, None)),
        ("os.fchmod(fd, 0o400)", (0o400, None)),
        ("call(268, -100, b'a', 0o604)", (0o604, None)),
        ("call(452, -100, b'a', 0o600, 0)", (0o600, None)),
        ("os.chown('a', -1, -1)", (0o640, None)),
        ("os.fchown(fd, -1, -1)", (0o640, None)),
        ("os.lchown('a', -1, -1)", (0o640, None)),
        ("os.chown('a', -1, -1, dir_fd=os.open('.', 0))", (0o640, None)),
        ("os.utime('a', (1, 2))", (0o640, 2_000_000_000)),
        ("os.utime(fd, ns=(1, 2))", (0o640, 2)),
        ("call(132, b'a', 0)", (0o640, ...)),
        ("call(235, b'a', 0)", (0o640, ...)),
        ("call(261, -100, b'a', 0)", (0o640, ...)),
    ],
)
def test_a_mode_an_owner_or_a_time_that_is_set_is_recorded(
    source: str, expected: tuple[int, object], tmp_path: Path
) -> None:
    done = whole(f'fd = make("a"); call(91, fd, 0o640)\n{source}', tmp_path)
    changed = [one for one in done.actions if isinstance(one, Changed)]
    found = (tmp_path / "work" / "a").stat()
    assert len(changed) == 2
    assert changed[-1].file == 1
    assert (changed[-1].rights.mode, changed[-1].rights.user, changed[-1].rights.group) == (
        expected[0],
        found.st_uid,
        found.st_gid,
    )
    assert changed[-1].modified == (found.st_mtime_ns if expected[1] is ... else expected[1])


def test_what_is_set_outside_or_in_vain_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "outside").touch()
    done = whole(
        'make("a"); os.chmod("../outside", 0o600)\n'
        "for act in (lambda: os.chmod('none', 0o600), lambda: os.utime('none')):\n"
        "    try: act()\n"
        "    except FileNotFoundError: pass",
        tmp_path,
    )
    assert done.actions == [MADE]


def test_a_file_is_recorded_with_the_rights_that_it_was_made_with(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "old").touch(mode=0o604)
    (tmp_path / "work" / "old").chmod(0o604)
    done = run('os.umask(0); os.open("a", os.O_CREAT, 0o751); os.mkdir("d", 0o710)', tmp_path)
    made = [
        one.rights.mode
        for operation in done.recording.operations
        if isinstance(operation.action, Names)
        for one in operation.action.changes
        if isinstance(one, Named) and one.rights
    ]
    assert made == [0o751, 0o710]
    assert [one.rights and one.rights.mode for one in done.recording.snapshot] == [0o604]
