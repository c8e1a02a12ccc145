"""What every room stands on: files, tables of text, fields, bounds, the environment, and the way to the Hub."""
