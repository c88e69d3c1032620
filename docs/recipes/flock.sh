#!/bin/sh
# In the place of: exec 9>/var/lock/build; flock -n 9 || exit 1
ticket=$(leasehold acquire build --no-wait --ttl 1h) || exit 1
trap 'leasehold release "$ticket"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

"${BUILD:-./build}"
