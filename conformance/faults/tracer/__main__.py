"""The tracer as a process of its own: `python -m holdfast.conformance.faults.tracer`. The package describes it.

Each point of a sweep starts one, so it is run as a file by `python -I -S`: nothing of the environment, of `site` or of
`runpy` is needed to trace.
"""

import gc
import sys

if __name__ == "__main__":
    # Nothing makes cycles, and a pause would be one of all tasks.
    gc.disable()
    # The folder that holds the package `holdfast`.
    sys.path.append(__file__.rpartition("/holdfast/")[0])

    from holdfast.conformance.faults.tracer.command import end_as
    from holdfast.conformance.faults.tracer.trace import main

    end_as(main(sys.argv[1:]))
