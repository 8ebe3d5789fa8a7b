ln -s "$WORLD/secret.txt" app/notes.txt
