#!/bin/sh
# For the crontab of every machine: */10 * * * * nightly-report.sh
# Runs the report once a night, on whichever machine is first; all others skip it. One that fails is
# tried again by the next that comes.
exec leasehold run nightly-report --skip --at-most-once-per 20h --label "cron on $(hostname)" \
    -- "${REPORT:-/usr/local/bin/report}"
