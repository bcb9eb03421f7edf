"""
# unknown-code (SPG902)

## What it does
Finds comments that name a rule code, or a word after `# spmdguard:`, that does not exist.

## Why is this bad
A mistyped code silences nothing, and a mistyped `# spmdguard: uniform` tells the analysis nothing. The author
believes otherwise.

## Example
```python
dist.barrier()  # spmdguard: ignore[SPG110] -- only the leaders' group comes here
```

## Use instead
```python
dist.barrier()  # spmdguard: ignore[SPG101] -- only the leaders' group comes here
```

## Known limits
In a `# noqa` comment only codes that begin with `SPG` are judged; the others belong to other linters. A
comment such as `# spmdguard: see the guide`, words in running text, is not taken for a directive. An unknown
code in `pyproject.toml` or on the command line is an error that ends the run, not a finding.

## Fix safety
No fix: only the author knows which code was meant. The help names the nearest one.

## References
- `spmdguard rule --all` lists every rule
- Directives and suppressions: `docs/concepts.md`
"""

from spmdguard_lint.rules.registry import rule

RULE = rule(code="SPG902", name="unknown-code", severity="warning", status="stable", page=__doc__)
