"""The Spark jobs over vectors: generating, verifying, comparing. Nothing here imports pyspark until a session opens."""
