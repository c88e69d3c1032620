#!/bin/sh
# As many of these as you like: one leads, the others stand by. When the leader ends, is killed or
# loses its lease, the next in line takes over; nothing leads twice.
while :; do
    leasehold run leader --ttl "${TTL:-15s}" -- "${LEAD:-./lead}"
    code=$?
    # 79: the lease was lost, so stand in line again. Anything else is the leader's own end.
    [ "$code" -eq 79 ] || exit "$code"
done
