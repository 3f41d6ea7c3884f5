"""PostgreSQL: its programs, a server for a whole run, and a server that lies in one workdir."""
