ln -s "$CHECKS" app/data
