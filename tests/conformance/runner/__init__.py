"""The runner of the conformance suite: Python 3.8 and its standard library, nothing else."""
