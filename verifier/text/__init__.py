"""Pure functions on strings: speech acts, negation, values, segments, windows. Every scan is linear in the text."""
