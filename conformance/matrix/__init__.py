"""What of a contract's matrix a run has sent: read from its exchanges, for the run's report, the gate and `explain`.

    walk         the exchanges of one side of a case, as what happened in its sessions
    shows        the attacks that what happened amounts to
    sent         all of it for one case: neighbours, formats, boundaries; how many pairs of operation and attack
    count        all of it for a run, held against matrix.yaml
    __main__     writes matrix.yaml from runs

Nothing here changes a verdict.
"""
