"""Starting and ending of processes and servers, for the harness and the references."""
