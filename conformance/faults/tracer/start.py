"""Starts the tracer sooner than `python -m holdfast.conformance.faults.tracer` does: each point of a sweep starts one.

Run as a file by `python -I -S`: nothing of the environment, of `site` or of `runpy` is needed to trace.
"""

import gc
import sys

if __name__ == "__main__":
    # Nothing makes cycles, and a pause would be one of all tasks.
    gc.disable()
    # The folder that holds the package `holdfast`.
    sys.path.append(__file__.rpartition("/holdfast/")[0])

    from holdfast.conformance.faults.tracer.__main__ import main
    from holdfast.conformance.faults.tracer.command import end_as

    end_as(main(sys.argv[1:]))
