-- -> the newest beat of all clients; NULL: no client (rule L4).
SELECT MAX(beat) FROM clients
