"$PY" -I -S -c 'import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect("\0" + sys.argv[1])
    s.send(b"abstract")' "$TOKEN"
