for number in $(seq 1500); do sleep 3 & done
ls -d /proc/[0-9]* | wc -l > app/count
wait
