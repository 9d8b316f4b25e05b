"""A module that is run as a program, for `test_forked_interpreters`."""

import sys

if __name__ == "__main__":
    print(__name__, sys.argv[0] == __file__, sys.argv[1:], sys.modules["__main__"].__file__)
