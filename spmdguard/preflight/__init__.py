"""Before the run: what this machine is like (``spmdguard env``), what its links can do (``spmdguard preflight``)."""
