# Honest, but greets on standard output first. $1 is the interpreter of the honest adapter, $2 its path.
echo 'Welcome to the shelf'
exec "$1" "$2"
