"""
# analysis-budget-exceeded (SPG904)

## What it does
Says which function was too large, or too deeply nested, to be analysed to its end.

## Why is this bad
The time for one function is bounded, so that no input can make a run take forever. Past that bound the linter
does not know whether ranks part ways in the function. It says so rather than calling the function clean.

## Example
A generated function of many thousand branches that all depend on each other.

## Use instead
Split the function, or move the part that calls collectives into a function of its own.

## Known limits
Reported whatever `select` says; only `ignore = ["SPG904"]` silences it. The bound counts analysis steps, not
seconds: the same file gives the same report on every machine.

## Fix safety
No fix.

## References
- What the analysis follows, and how far: `docs/concepts.md`
"""

from spmdguard_lint.rules.registry import rule

RULE = rule(code="SPG904", name="analysis-budget-exceeded", severity="warning", status="stable", page=__doc__)
