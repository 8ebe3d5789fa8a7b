"$PY" -I -S -c 'import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) as s:
    s.send(b"loopback")' "$PORT"
