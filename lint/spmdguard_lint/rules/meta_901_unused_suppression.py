"""
# unused-suppression (SPG901)

## What it does
Finds `# spmdguard: ignore[...]` comments, and SPG codes in `# noqa` comments, that silence nothing.

## Why is this bad
A suppression that is no longer needed hides the next real finding on its line. It also tells readers that the
line is dangerous when it is not.

## Example
```python
dist.barrier()  # spmdguard: ignore[SPG101] -- every rank reaches this line
```

## Use instead
```python
dist.barrier()
```

## Known limits
Only codes that this run looked for are judged: a suppression of a rule that `select` or `ignore` leaves out
is kept. A bare `# noqa`, which speaks to other linters too, is never reported. Where only some files of a
project are linted, a finding that needs the other files is not seen, and its suppression looks unused.

## Fix safety
Safe: comments do nothing. Our own comment is removed, or the unused code from it; a `# noqa`, which other linters may
read, is left to the author.

## References
- The same rule elsewhere: ruff's `unused-noqa` (RUF100), mypy's `--warn-unused-ignores`
"""

from spmdguard_lint.rules.registry import rule

RULE = rule(
    code="SPG901", name="unused-suppression", severity="warning", status="stable", page=__doc__, fix="safe"
)
