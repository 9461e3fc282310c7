"""Tests of sheets of workbooks."""
