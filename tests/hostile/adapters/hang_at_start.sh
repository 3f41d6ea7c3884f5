# Reads nothing and says nothing, in a child of the shell.
sleep 3600
