"""The gate: may this build ship? It judges the evidence of a run again. Each module gives its reasons to hold.

| module | question |
|---|---|
| `decision` | the decision: all reasons, the gravest first; was the live surface fit, and is it still judged so |
| `run` | is the file whole, of this kit, this contract and this plan; how old is it; is it the run that was asked for |
| `cases` | has each case a result, does one hold the gate, do its exchanges show it: each is judged a second time |
| `documents` | of `holdfast vectors verify`: was every document answered as expected; all rows are made again |
| `model` | the question, the answer, and every reason code |

The reason of an adapter's refusal is judged where the run judges it: `conformance.cases.expect`.
"""
