"""Fitness of surfaces in SQLite files: a snapshot, told in the words of all databases, and the probes on a copy.

What SQLite cannot show, and what replaces it:

* There are no roles and no grants. A user who may write the file may do everything with it, so "only the proven
  registrar writes" (f) rests on the system's rights: a policy names the account of the registrar, and the file, what
  SQLite keeps beside it and their folder belong to it and are closed to writing by all others. Without that
  declaration (f) is not proven; with rights that contradict it (f) is refuted.
* Half of what matters belongs to the connection, and no file holds it: `synchronous` (e), `recursive_triggers`,
  without which REPLACE deletes a row and fires no delete trigger (f), `foreign_keys`, `ignore_check_constraints`. A
  policy declares what the registrar's connections set, and probes run with that, or else with SQLite's defaults: what
  a connection with the defaults can do to a consumed record refutes (f). Durable commits are not proven without a
  declaration, although SQLite's default is durable.
* One file has one write lock. No audit record can be written to it while the transaction of which it speaks is open,
  so an audit in the same file refutes (g).

The file is never written, and nothing is made or changed beside it (`live`). Probes run on a copy.
"""
