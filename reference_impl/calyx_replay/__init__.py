"""Calyx replay state: a mailbox that delivers each envelope once and refuses all that it cannot prove to be new."""
