"""Bugs that a program plants: every place of a reference's source that an operator can change, and each change.

`sites` lists them for one contract; `python` has the operators on Python, `sql` those on the texts of SQL in it, and
`reach` says which lines use what a module binds. `holdfast.reference_impl.altered` imports a reference with one change.
"""
