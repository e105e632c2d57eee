"""The measures of `make bench`. README.md says what each measures and how to read the figures."""
