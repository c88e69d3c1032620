#!/bin/sh
# Takes one of three permits for each job and sends it along with the job. The permit outlives this
# script; a job that gets lost gives it back after an hour.
queue=${1:?the directory of the queue}
while read -r job; do
    ticket=$(leasehold acquire exports --permits 3 --ttl 1h --label "$job") || exit
    umask 077
    printf '%s\n%s\n' "$ticket" "$job" >"$queue/.$job" && mv "$queue/.$job" "$queue/$job"
done
