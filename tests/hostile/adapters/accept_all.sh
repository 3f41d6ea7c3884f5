# Accepts everything and remembers nothing. Requests are canonical JSON, so the members can be cut out by sed.
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
    case $line in
    *'"op":"hello"'*)
        challenge=$(printf '%s' "$line" | sed 's/.*"challenge":"\([^"]*\)".*/\1/')
        printf '{"id":"%s","ok":{"protocol":1,"challenge":"%s",' "$id" "$challenge"
        printf '"implementation":{"name":"accept-all","version":"1","language":"sh"},'
        printf '"claims":[{"contract":"toy","version":"0.1.0","not_claimed":{}}],"limits":{"workers":4}}}\n'
        ;;
    *'"method":"state"'*) printf '{"id":"%s","outcome":"ok","value":{"entry":[]}}\n' "$id" ;;
    *'"method":"audit"'*) printf '{"id":"%s","outcome":"ok","value":{"records":[]}}\n' "$id" ;;
    *'"method":"put"'*)
        printf '{"id":"%s","outcome":"accepted","effect":"new","value":{"entry":{"key":"any","nonce":"any"}}}\n' "$id"
        ;;
    *) printf '{"id":"%s","outcome":"ok"}\n' "$id" ;;
    esac
    case $line in *'"op":"bye"'*) exit 0 ;; esac
done
