"""Instances that die, stores on disk that are damaged, and time that passes (IK-CRASH, IK-TTL, IK-LIVE)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import (
    DECLARED,
    NO_FILES,
    ON_A_SERVER,
    PURGE,
    Got,
    Service,
    service,
)

# Of 28 requests each: more keys than a small cache has room for.
_ROUNDS = 12
# Files beside a database of SQLite, and how many files are damaged alone.
_BESIDE, _ALONE = ("-wal", "-shm", "-journal"), 3
# Number of the keys behind the first one. A log of which half is cut off keeps its first key.
_BEHIND = 5
# A step of the clock, and the longest one.
_HOUR_S, _FARTHEST_S = 3600.0, 1_000_000
# How many keys are raced for behind their end, by how many requests.
_RACED, _AT_ONCE = 8, 16
# How long a retry is waited for while the newer request is held; and shortly before the end of a key, in seconds.
_ASKED_MS, _BEFORE_END_S = 3000, 1.0
# One with summer time, and one far from it.
_ZONES = ("Europe/Berlin", "Asia/Tokyo")
# So many requests are sent at once.
_BURST = 64
_STILL = ("UNKNOWN", "UNAVAILABLE", "DUPLICATE")


@clause("IK-ONCE-4", provocations=("instance",))
def test_a_success_survives_the_death_of_the_instance(bench: Bench) -> None:
    """SIGKILL as soon as the client has its answer, three times."""
    with service(bench, anywhere=True) as s:
        s.must_promise(s.profile["durable"], "keys do not outlive the process")
        for _ in range(3):
            tag, key = s.tag(), s.key()
            first = s.first(tag, key)
            s.begin_again()
            got = s.submit(s.request(tag, key))
            s.one_effect(tag, "a retry behind the death of the instance that had answered")
            s.retried(first, got, "a retry behind the death of the instance that had answered")


@clause("IK-CRASH-1", "IK-RACE-5", "IK-LIVE-1", provocations=("instance", "hold"))
def test_the_death_of_an_instance_leaves_one_effect_and_no_key_that_is_stuck(bench: Bench) -> None:
    """SIGKILL while the handler is held, before its effect and behind it; retries at once and behind the lease."""
    with service(bench, anywhere=True) as s:
        s.must_promise(s.profile["durable"], "keys do not outlive the process")
        # Some instances start an hour later, or with a clock that was set back.
        # A key that is over by then is free.
        lives = s.profile["lifetime_s"]
        outlasts = lives is None or lives > 2 * _HOUR_S
        late = (_HOUR_S, -_HOUR_S) if "clock" in s.wires and outlasts else ()
        ends = [("kill", "before", 0.0), ("kill", "after", 0.0), ("end", "after", 0.0)]
        for how, when, step in [*ends, *(("kill", "after", each) for each in late)]:
            tag, key = s.tag(), s.key()
            s.hold(tag, when=when)
            s.begin("first", s.request(tag, key))
            s.instance(how)
            s.release(tag)
            s.finish("first")
            s.pause(100)
            # A handler that died before its effect may be counted by the sink all the same: its request was there.
            before = s.effects(tag)
            if step:
                s.pass_time(step)
            if not s.instance("start"):
                s.not_reached("the instance does not start again")
            later = f", started with the clock {step:+g} s" if step else ""
            _abandoned(s, tag, key, before, f"{how} while it was held {when} its effect{later}")
        for number in s.instances[1:]:
            _beside_a_start(s, number)


def _beside_a_start(s: Service, number: int) -> None:
    """An instance ends and is started while another one works: that one's request is not taken for abandoned."""
    for when in ("before", "after"):
        tag, key = s.tag(), s.key()
        s.hold(tag, when=when)
        s.begin("first", s.request(tag, key))
        s.begin_again("end", number)
        s.release(tag)
        first, why = s.finish("first"), f"instance {number} was started while the first was held {when} its effect"
        s.at_most_one(tag, why, first)
        got = s.settles(s.request(tag, key, instance=number), _STILL, why)
        s.at_most_one(tag, why, first, got)
        if first.accepted:
            s.retried(first, got, why)


def _abandoned(s: Service, tag: str, key: str, before: int, why: str) -> None:
    reexecutes = s.profile["abandoned"] == "reexecute"
    soon = s.submit(s.request(tag, key))
    if soon.accepted and soon.effect == "new" and before and not reexecutes:
        s.one_effect(tag, f"{why}; a retry at once", before)
    s.behind_the_lease(*[s.request(tag, key)] * 2)
    got = s.settles(s.request(tag, key), _STILL, why)
    found = s.effects(tag)
    if found > before and reexecutes:
        s.fail("fail_open", f"{why}: a retry was executed behind {before} effects: {DECLARED}")
    if found > max(before, 1) or (found > before and before):
        s.fail("fail_open", f"{why}: the retry made effect {found}")
    if got.accepted and got.effect == "prior" and not found:
        s.wrong("lost_durability", f"{why}: the retry got a success, and there is no effect")
    s.stays(s.request(tag, key), found, f"{why}; long behind the lease")


@clause("IK-CRASH-3", provocations=("instance",))
def test_a_damaged_store_is_refused_and_never_made_anew(bench: Bench) -> None:
    """While no instance runs, all its files are cut, emptied or gone, then each alone; and while one runs."""
    for how in ("cut", "gone", "empty"):
        for alone in range(_damaged(bench, how)):
            _damaged(bench, how, alone)
        if how != "gone":
            _damaged(bench, how, runs=True)


def _damaged(bench: Bench, how: str, alone: int | None = None, *, runs: bool = False) -> int:
    """How many of the files can be damaged alone."""
    with service(bench) as s:
        if "data" not in s.wires:
            s.unsupported(NO_FILES)
        s.must_promise(s.profile["durable"], "keys do not outlive the process")
        tag, key = s.tag(), s.key()
        s.first(tag, key)
        # A log that is cut may have lost its end, as behind a torn write. What came before that has to be there.
        for _ in range(_BEHIND if how == "cut" else 0):
            s.first(s.tag(), s.key())
        if not runs:
            s.instance("end")
        files = [found for found in s.session.tree("data") if found["kind"] == "file" and found["size"]]
        if not files:
            s.not_reached("there is no file in {data} to damage")
        # What a database keeps beside itself until it is closed is no store of its own.
        single = [found for found in files if not found["path"].endswith(_BESIDE)]
        single = single[:_ALONE] if len(files) > 1 else []
        if alone is not None and alone >= len(single):
            return 0
        if runs:
            files = [found for found in files if not found["path"].endswith(_BESIDE)]
        struck, which = (files, "all files are") if alone is None else ([single[alone]], f"{single[alone]['path']} is")
        s.is_disturbed = True
        for found in struck:
            if how == "gone":
                s.session.remove(found["path"])
            else:
                s.session.cut(found["path"], found["size"] // 2 if how == "cut" else 0)
        if runs or s.instance("start"):
            got = s.submit(s.request(tag, key))
            s.one_effect(tag, f"a retry on a store of which {which} {how}")
            if got.accepted and got.effect == "new":
                s.fail("fail_open", f"a retry on a store of which {which} {how} was executed")
            if alone is None and how != "cut" and not runs:
                s.must_have_lost(got)
            # What mends a store behind a refusal has forgotten the key all the same.
            new, other = s.tag(), s.key()
            for each, used in ((tag, key), (new, other), (tag, key)):
                s.submit(s.request(each, used))
                s.one_effect(tag, f"{which} {how}, and the old key is asked again behind a refusal")
            s.instance("kill")
            if s.instance("start"):
                s.submit(s.request(tag, key))
                s.one_effect(tag, f"{which} {how}, and the instance was started again")
        return len(single)


def _ended(s: Service) -> list[tuple[str, str, Got]]:
    """One key for each way in which a request can end: a success, each final error, a handler that throws."""
    endings: list[dict[str, object]] = [{}]
    if s.profile["handler"] == "inside":
        endings += [{"status": status} for status in s.profile["final"]]
        endings += [{"throw": True}] * (s.profile["thrown"] != "freed")
    found = []
    for ending in endings:
        tag, key = s.tag(), s.key()
        if ending:
            s.ending(tag, **ending)
        got = s.submit(s.request(tag, key))
        s.one_effect(tag, f"a handler that ends with {ending or 'a success'}")
        found.append((tag, key, got))
    return found


def _kept(s: Service, ended: list[tuple[str, str, Got]], why: str) -> None:
    for tag, key, first in ended:
        got = s.submit(s.request(tag, key))
        if first.accepted:
            s.retried(first, got, f"a retry of what ended with {first.status}, {why}")
        s.one_effect(tag, f"a retry of what ended with {first.status}, {why}")


@clause("IK-TTL-1", "IK-TTL-2", "IK-TTL-4")
def test_a_key_is_kept_for_its_time_and_free_behind_it(bench: Bench) -> None:
    """Just before the end, through a restart; behind the end; and with a clock that goes back."""
    with service(bench, short=True, anywhere=True) as s:
        lifetime = s.profile["lifetime_s"]
        s.must_promise(lifetime is not None, "no lifetime is published")
        ended = _ended(s)
        raced = [(s.tag(), s.key()) for _ in range(_RACED if "burst" not in s.bench.not_claimed else 0)]
        for tag, key in raced:
            s.first(tag, key)
        steps = [step for step in (3600.0, -7200.0, 3600.0) if abs(step) < lifetime]
        # Far back as well: a key is not older for that.
        for step in [*steps, -1.5 * lifetime, 1.5 * lifetime] if "clock" in s.wires else ():
            if abs(step) < _FARTHEST_S:
                s.session.provoke("pass_time", {"ms": round(1000 * step)})
                _kept(s, ended, f"a step of the clock of {step:g} s")
        # In real time something may take a second.
        left = 1.0 if "clock" in s.wires else 3.0
        s.pass_time(max(0.0, lifetime - left))
        _kept(s, ended, f"{left:g} s before the end")
        if "process" in s.wires and "clock" in s.wires and s.profile["durable"]:
            s.begin_again("end")
            _kept(s, ended, "before the end, behind a restart")
        tag, key, _ = ended[0]
        s.pass_time(left + 1)
        for each, used in raced:
            s.may_have(each, 2)
            s.burst([s.request(each, used, instance=number) for number in (s.instances * _AT_ONCE)[:_AT_ONCE]])
            if s.effects(each) > 2:
                s.fail(
                    "fail_open", f"{_AT_ONCE} requests at once with a key behind its end are executed more than once"
                )
        s.may_have(tag, 2)
        got = s.submit(s.request(tag, key))
        if got.accepted:
            again = s.submit(s.request(tag, key))
            s.one_effect(tag, "a key behind its end, and its retry", 2 if got.effect == "new" else 1)
            if got.effect == "new":
                s.retried(got, again, "a retry of a request behind the end of the key before")
            return
        # A key may be kept for longer than is published.
        s.refused(got, ("MALFORMED", "MISMATCH", "DUPLICATE"), "a retry behind the end")


@clause("IK-BROKER-1", provocations=("instance",))
def test_the_window_of_a_broker_outlives_what_was_consumed(bench: Bench) -> None:
    """A message is consumed; then a restart or a death of the instance, a purge, and those of the store's server."""
    with service(bench, {"store": "queue"}) as s:
        s.must_promise(s.profile["handler"] == "behind", "no consumer makes the effect, behind the answer")
        ways: list[tuple[str, str]] = [("instance", "end"), ("instance", "kill")]
        ways += [("serve_store", PURGE)] * (PURGE in s.faults)
        ways += [("serve_store", how) for how in ("restart", "kill-and-restart") if "server" in s.wires]
        for what, how in ways:
            tag, key = s.tag(), s.key()
            first = s.first(tag, key)
            s.one_effect(tag, "a message that was published and consumed")
            if what == "instance":
                s.begin_again(how)
            else:
                s.is_disturbed = True
                s.session.provoke("serve_store", {"do": how})
            why = f"the same id behind a {how}, its message consumed"
            got = s.settles(s.request(tag, key), ("DUPLICATE",), why)
            s.one_effect(tag, why)
            s.retried(first, got, why)


@clause("IK-RACE-3", "IK-TTL-2", provocations=("hold", "pass_time"))
def test_a_late_result_never_overwrites_that_of_a_key_that_was_used_again(bench: Bench) -> None:
    """The first is held beyond the life of its key; the key is used for another payload; then the first goes on.

    The newer request has ended by then, or still runs.
    """
    with service(bench, anywhere=True) as s:
        lifetime = s.profile["lifetime_s"]
        s.must_promise(lifetime is not None, "no lifetime is published")
        for runs in (False, True):
            old, new, key = s.tag(), s.tag(), s.key()
            s.hold(old)
            s.begin(f"old-{runs}".lower(), s.request(old, key))
            s.pass_time(lifetime + 1)
            if runs:
                s.hold(new, when="after")
            came = s.send("newer", s.request(new, key))
            got = s.finish("newer") if came != "sink" else None
            s.release(old)
            s.finish(f"old-{runs}".lower())
            if came == "sink":
                between = s.submit(s.request(new, key, within_ms=_ASKED_MS))
                if between.accepted or s.is_of_another(new, between):
                    s.fail("fail_open", f"a retry got {between}, an older request's late result, while its own ran")
                s.release(new)
                got = s.finish("newer")
            if got is None or not got.accepted:
                s.at_most_one(new, "a key whose first request still runs behind its end")
                return
            again = s.submit(s.request(new, key))
            s.one_effect(new, "a key that was used again behind its end")
            s.retried(got, again, "a retry of the newer request, behind the late result of the older one")


@clause("IK-TTL-1", "IK-TTL-4", provocations=("pass_time",))
def test_no_turn_of_the_calendar_ends_a_key_early(bench: Bench) -> None:
    """Made just before an hour, a month or a year, and across a change of summer time, in two zones."""
    with service(bench, short=True) as s:
        lifetime = s.profile["lifetime_s"]
        s.must_promise(lifetime is not None, "no lifetime is published")
        if "process" in s.wires:
            for number, zone in zip(s.instances, _ZONES, strict=False):
                s.instance("start", number, under=f"env TZ={zone}")
        for turn, made_s in _turns(s.session.now, lifetime):
            s.set_clock(turn + timedelta(seconds=made_s))
            tag, key = s.tag(), s.key()
            first = s.first(tag, key)
            # Behind a change of the zone as well as just before the end.
            for left in sorted({min(3000.0, lifetime / 2), _BEFORE_END_S}, reverse=True):
                s.set_clock(turn + timedelta(seconds=made_s + lifetime - left))
                for number in s.instances:
                    why = f"made {-made_s:g} s before {turn:%F %T}, {left:g} s before its end, instance {number}"
                    got = s.submit(s.request(tag, key, instance=number))
                    s.one_effect(tag, why)
                    s.retried(first, got, why)


def _turns(now: str, lifetime: float) -> list[tuple[datetime, float]]:
    """Moments at which a calendar turns, and how much later, as seconds, a key is made."""
    year = datetime.fromisoformat(now).year + 1
    sundays = [datetime(year, month, 31, 1, tzinfo=UTC) for month in (3, 10)]
    changes = [day - timedelta(days=(day.weekday() + 1) % 7) for day in sundays]
    plain = [(year, 1, 10, 7), (year, 2, 1, 0), (year, 3, 1, 0), (year + 1, 1, 1, 0)]
    found = [(datetime(*moment, tzinfo=UTC), -0.5) for moment in plain]
    # It ends half an hour behind the change, and half of its life behind it.
    found += [(turn, made) for turn in changes for made in (1800.0 - lifetime, -lifetime / 2)]
    return sorted(found, key=lambda each: each[0] + timedelta(seconds=each[1]))


def _at_once(s: Service, pairs: Sequence[tuple[str, str]], first: int = 0) -> list[Got]:
    """A request for each tag and key, through the instances in turn."""
    numbers = s.instances
    asked = [(tag, key, numbers[at % len(numbers)]) for at, (tag, key) in enumerate(pairs, first)]
    return s.burst([s.request(tag, key, instance=number, within_ms=20_000) for tag, key, number in asked])


@clause("IK-STORE-5", "IK-LOAD-1", "IK-TTL-1")
def test_a_key_is_kept_beside_many_others(bench: Bench) -> None:
    """As many requests as the contract says; then the first key, one from among them, and the last."""
    with service(bench) as s:
        if not s.is_new:
            s.unsupported("the store is that of other users too")
        many = round(int(bench.contract.parameters["many_keys"].value or 0) * bench.thorough)
        if "clock" not in s.wires and s.profile["lifetime_s"] is not None:
            # In real time the first one has to live until the end.
            many = min(many, round(4 * s.profile["lifetime_s"]))
        kept: list[tuple[str, str, Got]] = []
        for _ in range(0, many, _BURST):
            pairs = [(s.tag(), s.key()) for _ in range(_BURST)]
            found = _at_once(s, pairs)
            kept += [(*pair, got) for pair, got in zip(pairs, found, strict=True) if got.accepted]
        if len(kept) < many // 2:
            s.not_reached(f"of {many} requests {len(kept)} were accepted")
        for tag, key, first_got in (*kept[:_BURST:8], kept[len(kept) // 2], kept[-1]):
            why = f"a retry behind {many} requests with other keys"
            got = s.submit(s.request(tag, key))
            s.one_effect(tag, why)
            s.retried(first_got, got, why)


@clause("IK-LOAD-1", "IK-ONCE-2")
def test_under_load_nothing_is_executed_twice_and_no_key_is_stuck(bench: Bench) -> None:
    """Hundreds of keys, some of them twice, through every instance; once the store's server dies and is back."""
    with service(bench, ON_A_SERVER, anywhere=True) as s:
        asked, told = [], set()
        rounds = round(_ROUNDS * bench.thorough)
        for round_ in range(rounds):
            if round_ == rounds // 2 and "server" in s.wires and s.profile["store_durable"]:
                s.is_disturbed = True
                s.session.provoke("serve_store", {"do": "kill-and-restart"})
            pairs = [(s.tag(), s.key()) for _ in range(24)]
            pairs += pairs[:4]
            asked += pairs
            found = _at_once(s, pairs, round_)
            told |= {tag for (tag, _), got in zip(pairs, found, strict=True) if got.accepted}
        # A request that nobody ends is in progress until its lease is over, and only then stuck.
        still = () if s.outlasts_leases or s.profile["lease_s"] is None else ("IN_PROGRESS",)
        if s.outlasts_leases:
            s.behind_the_lease()
        for tag, key in dict.fromkeys(asked):
            # A service that could not cope may say so; what it may not do is execute twice, or be stuck.
            got = s.settles(s.request(tag, key), ("DUPLICATE", "UNKNOWN", *still), "a key under load")
            if not got.accepted and s.effects(tag) <= 1:
                continue
            if got.accepted and got.effect == "new" and tag in told and s.names_effects:
                s.fail("fail_open", "a request under load was answered, and its retry was executed")
            s.one_effect(tag, "a key under load")
