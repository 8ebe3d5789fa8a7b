echo planted > "/dev/shm/$TOKEN"
