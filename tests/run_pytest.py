"""Runs pytest on the paths in the arguments: the main program of every Bazel test."""

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]]))
