mount -t tmpfs none "$WORLD/outside" && touch "$WORLD/outside/is-mounted" app/mounted
