"""Reasons why a peer is ahead, where they were found out: by the title of a measure and the beginning of a method's name."""

REASONS = {}
