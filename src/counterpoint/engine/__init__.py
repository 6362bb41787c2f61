"""Run many plays: jobs with content-hashed keys, threads, a journal that survives `kill -9`, a run folder."""
