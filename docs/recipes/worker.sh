#!/bin/sh
# Does the jobs of the queue. A ticket is a secret, so it is not put on a command line: the first
# line of stdin is the ticket, and what follows is for the command.
queue=${1:?the directory of the queue}
for job in "$queue"/*; do
    [ -f "$job" ] || continue
    leasehold adopt - -- "${WORK:-./work}" <"$job"
    code=$?
    # 79: the permit had run out before the job was begun. It is somebody else's now.
    if [ "$code" -eq 79 ]; then echo "$(basename "$job"): too late" >&2; fi
    rm "$job"
done
