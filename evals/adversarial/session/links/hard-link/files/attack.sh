ln "$WORLD/secret.txt" app/notes.txt
