"""Which states of the disk a crash may leave behind, from a recording alone.

`contents` are the bytes of one file, `pending` what is not durable of it, `names` in which order names reach the disk
on each kind of file system. `disk` follows a recording and knows what is durable and what is pending after each
operation, `states` are the legal states there, `kept` the bytes that they make, `losses` the words for what they lack.
`survey` counts them, `plan` puts them in order of worth. docs/crash-model.md has the rules and what they were
calibrated on.
"""
