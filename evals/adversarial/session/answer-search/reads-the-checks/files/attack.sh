cat "$CHECKS"/* > app/stolen
