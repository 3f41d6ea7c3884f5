# Answers every request in prose.
while read -r line; do
    echo 'yes, of course'
done
