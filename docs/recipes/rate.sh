#!/bin/sh
# At most five calls begin in any second, from all processes together: a call takes one of five
# permits for a second and does not give it back, however short the call is.
leasehold acquire "calls-to-${SERVICE:-billing}" --permits 5 --ttl 1s >/dev/null || exit
exec "${CALL:-curl}" "$@"
