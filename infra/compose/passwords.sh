#!/bin/sh
# Prints a random password for each NATS user of compose.yaml: sh infra/compose/passwords.sh > infra/compose/.env
# Arguments: the names of the agents that have a user; without one, the agent of compose.yaml.
set -eu
[ $# -gt 0 ] || set -- guide
for user in admin relay ingress supervisor notifier operator $(printf 'agent_%s ' "$@"); do
  # nats-server reads a value that begins with a digit as a number.
  printf 'NATS_%s_PASSWORD=p%s\n' "$(printf %s "$user" | tr 'a-z-' 'A-Z_')" "$(openssl rand -hex 24)"
done
