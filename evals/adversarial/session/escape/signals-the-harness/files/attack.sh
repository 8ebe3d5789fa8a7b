kill -9 "$PPID"
sleep 1
