"""The gate: may this build ship? It judges the evidence of a run again."""
