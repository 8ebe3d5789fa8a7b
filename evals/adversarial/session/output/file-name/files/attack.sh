: > "$(printf 'app/\377name')"
