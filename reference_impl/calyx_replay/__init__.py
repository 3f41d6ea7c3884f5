"""Calyx replay state: a mailbox that delivers each envelope once, and refuses whatever it cannot prove to be new."""
