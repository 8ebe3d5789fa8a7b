head -c 300000000 /dev/zero | tr '\0' 'x'
