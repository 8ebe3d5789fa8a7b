mkfifo app/pipe
