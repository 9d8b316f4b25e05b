"""`python -m pointstamp.cli` is `pointstamp`."""

from pointstamp.cli import main

main()
