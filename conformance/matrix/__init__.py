"""What of a contract's matrix a run has sent: read from its exchanges, for the run's report, the gate and `explain`.

    walk         the exchanges of one side of a case, as what happened in its sessions
    shows        the attacks that what happened amounts to
    boundaries   how near to a parameter a call came
    varied       neighbours and formats of leaves
    sent         all of it for one case: how many of each pair of an operation and an attack
    count        all of it for a run, held against matrix.yaml
    __main__     writes matrix.yaml from runs

Nothing here changes a verdict.
"""
