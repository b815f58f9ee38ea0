"""Tests of the command line's own words and grammar."""
