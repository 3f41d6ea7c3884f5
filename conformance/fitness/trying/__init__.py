"""What is tried on a copy of a surface: rows that it accepts, and statements that it must refuse, in every database."""
