"""One run: its plan, its processes, and the recorder that writes the evidence."""
