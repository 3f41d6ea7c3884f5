"""The criteria of a surface in SQLite files, judged from evidence alone: by subject, like those of PostgreSQL."""
