"""
# cannot-parse (SPG903)

## What it does
Says which file could not be read or parsed, where, and why.

## Why is this bad
A file that cannot be read is not checked, and calls into it are unknown to the rest of the analysis. A linter
that skips it in silence promises more than it has looked at.

## Example
```python
def train(
    model.step()
```

## Use instead
```python
def train(model):
    model.step()
```

Exclude files that are not meant to be Python, such as templates:

```toml
[tool.spmdguard.lint]
extend-exclude = ["templates/**"]
```

## Known limits
Reported whatever `select` says; only `ignore = ["SPG903"]` silences it. Grammar that is newer than the
running Python is read with libcst; where libcst does not know it either, the file is reported.

## Fix safety
No fix.

## References
- [PEP 263](https://peps.python.org/pep-0263/): how Python finds a source file's encoding
"""

from spmdguard_lint.rules.registry import rule

RULE = rule(code="SPG903", name="cannot-parse", severity="error", status="stable", page=__doc__)
