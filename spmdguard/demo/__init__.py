"""The demonstration: a script hangs and is explained, the linter shows the line, the guarded script ends right."""
