"""The statements that make the database (source section 3), one function for each table."""

from __future__ import annotations


def key_check() -> str:
    """The check against a second form of one key: other types, cases and lengths, and text after a NUL."""
    return (
        "typeof(replay_key) = 'text' AND length(replay_key) = 64 AND length(CAST(replay_key AS BLOB)) = 64 "
        "AND replay_key NOT GLOB '*[^0-9a-f]*'"
    )


def replay_state() -> str:
    """The source's table. NOT NULL, because a TEXT PRIMARY KEY alone holds any number of NULLs in SQLite."""
    return (
        "CREATE TABLE replay_state (\n"
        f"  replay_key TEXT PRIMARY KEY NOT NULL CHECK ({key_check()}),\n"
        "  msg_id TEXT NOT NULL,\n"
        "  sender_fp TEXT NOT NULL,\n"
        "  recipient_fp TEXT NOT NULL,\n"
        "  seen_at TIMESTAMP NOT NULL,\n"
        "  envelope_timestamp TEXT NOT NULL,\n"
        "  UNIQUE (replay_key)\n"
        ")"
    )


def indexes() -> tuple[str, ...]:
    """The source's two indexes; neither is unique."""
    return (
        "CREATE INDEX idx_seen_at ON replay_state(seen_at)",
        "CREATE INDEX idx_msg_id ON replay_state(msg_id)",
    )


def inbox() -> str:
    """The delivered envelopes, in order."""
    return (
        "CREATE TABLE inbox (\n"
        "  position INTEGER PRIMARY KEY AUTOINCREMENT,\n"
        "  replay_key TEXT,\n"
        "  msg_id TEXT,\n"
        "  envelope BLOB\n"
        ")"
    )


def blocked_msg_id() -> str:
    """Message ids of version 0 whose envelopes are lost, each with the last timestamp that is refused."""
    return 'CREATE TABLE blocked_msg_id (\n  msg_id TEXT PRIMARY KEY,\n  "until" TEXT\n)'


def migrated_ahead() -> str:
    """Keys of migrated envelopes whose time has still to come: their records are pruned before that."""
    return 'CREATE TABLE migrated_ahead (\n  replay_key TEXT,\n  "until" TEXT\n)'


def mailbox_state() -> str:
    """One row: the last automatic prune, how many there were, and the greatest cutoff of any prune."""
    return "CREATE TABLE mailbox_state (\n  last_automatic TEXT,\n  automatic INTEGER,\n  pruned_before TEXT\n)"


def statements() -> tuple[str, ...]:
    """Everything that provisioning runs, in order."""
    return (
        replay_state(),
        *indexes(),
        inbox(),
        blocked_msg_id(),
        migrated_ahead(),
        mailbox_state(),
        "INSERT INTO mailbox_state (automatic) VALUES (0)",
    )
