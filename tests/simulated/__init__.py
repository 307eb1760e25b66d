"""dpmem on machines that this one is not. `fixtures.py` is for the tests of other folders, too."""
