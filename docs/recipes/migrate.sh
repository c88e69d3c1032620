#!/bin/sh
# Every instance starts so. The first one migrates while the others wait; they find it done. A
# migration that fails starts no instance.
leasehold run migrate --wait 15m -- "${MIGRATE:-./migrate-if-needed}" || exit
exec "${SERVER:-./server}"
