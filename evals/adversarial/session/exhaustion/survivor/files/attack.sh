(setsid sh -c "trap '' TERM HUP; sleep 600; : $TOKEN" > /dev/null 2>&1 < /dev/null &)
