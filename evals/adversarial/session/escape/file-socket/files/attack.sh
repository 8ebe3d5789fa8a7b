"$PY" -I -S -c 'import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.send(b"file")' "$WORLD/s"
