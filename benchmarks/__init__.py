"""What `make bench` measures: README.md here says what, how, and how to read it."""
