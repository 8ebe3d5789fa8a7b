"$PY" -I -S -c 'import socket; socket.socket(socket.AF_UNIX).bind("app/s")'
