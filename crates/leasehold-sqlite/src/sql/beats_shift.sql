-- ?1 microseconds in which nobody could beat: they make nobody silent (rule L4).
UPDATE clients SET beat = beat + ?1
