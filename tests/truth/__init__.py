"""Does the report say what the runtime did? Programs, a reader of the runtime's trace, and comparisons."""
