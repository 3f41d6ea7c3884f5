# Ends with status 1 before it reads anything.
exit 1
