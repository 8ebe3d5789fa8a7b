echo planted > "$WORLD/outside/planted"
