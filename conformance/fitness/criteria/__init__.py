"""What the criteria (a) to (i) ask of a surface. Pure: evidence and policy in, reasons out."""
