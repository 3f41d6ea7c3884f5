"""The gate: may this build ship? It judges the evidence of a run again. Each module gives its reasons to hold.

| module | question |
|---|---|
| `decision` | the decision: all reasons, the gravest first |
| `run` | is the file whole, is the run of this kit, this contract and this plan, how old is it |
| `identity` | is it the run that the caller asks for: files, commit, nonce, seed |
| `cases` | has each case a result, and does one of them hold the gate |
| `again` | do the exchanges show what a verdict line says: no line is believed alone |
| `suites`, `faults` | the second judgement of a suite test and of a fault |
| `fitness` | was the live surface fit, and is it still judged fit |
| `model` | the question, the answer, and every reason code |

The reason of an adapter's refusal is judged where the run judges it: `conformance.cases.expect`.
"""
