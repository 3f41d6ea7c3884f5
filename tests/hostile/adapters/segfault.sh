# Ends by SIGSEGV before it answers.
ulimit -c 0
kill -s SEGV $$
