cat "$RESULTS"/*.txt > app/stolen
