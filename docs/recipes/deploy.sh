#!/bin/sh
# One deployment at a time, in the order of the jobs. If the job is killed, so is the deployment, at
# once; the next job begins when the store is certain of that: after the TTL at the latest.
exec leasehold run "deploy-${TARGET:-production}" --wait 30m --ttl 1m --max-hold 1h \
    --label "${CI_JOB_URL:-by hand}" -- sh -c '
        # Whoever was first but is slow must not overwrite what came after it: the target remembers
        # the largest fencing token and refuses smaller ones.
        exec "${DEPLOY:-./deploy}" --fence "$LEASEHOLD_FENCING_TOKEN"
    '
