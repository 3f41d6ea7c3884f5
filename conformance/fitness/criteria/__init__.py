"""What the criteria (a) to (i) ask of a surface in PostgreSQL. Pure: evidence and policy in, reasons out."""
