"$PY" -I -S -c 'import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3): os.close(descriptor)
        time.sleep(600)
    os._exit(0)' "$TOKEN"
