"""Run many plays: jobs with content-hashed keys, threads, a journal that survives `kill -9`, a run folder.

And score what others run: `live` reads and scores the runs that a receiver puts into the store.
"""
