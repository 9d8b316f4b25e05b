"""`python -m pointstamp` is `pointstamp`."""

from pointstamp.cli import main

main()
