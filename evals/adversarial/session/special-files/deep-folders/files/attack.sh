"$PY" -I -S -c 'import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")'
