"""SPG901: remove the comment that silences nothing, or the codes from it."""

from __future__ import annotations

import re

import libcst as cst

from ..model import Finding
from .registry import Proposal
from .rewrite import Rewrite
from .script import Script, walk


def fix(finding: Finding, script: Script) -> Proposal | None:
    """Safe: comments do nothing."""
    named = re.match(r"this comment silences no (SPG\d{3}) \(([\w-]+)\)", finding.message)
    for node in walk(script.module):
        if isinstance(node, cst.TrailingWhitespace) and node.comment is not None:
            place = script.positions[node.comment].start
            if place.line == finding.site.start.row:
                return _without(script, node, named.groups() if named else ())
    return None


def _without(script: Script, node: cst.TrailingWhitespace, words: tuple[str, ...]) -> Proposal | None:
    """The comment without some codes; without all of it where nothing else stands in it."""
    assert node.comment is not None
    text = node.comment.value
    ours = re.match(r"#\s*spmdguard:\s*ignore\s*(?:\[([^\]]*)\])?(?:\s*--.*)?$", text)
    if ours is None:
        return None
    codes = [code for code in re.split(r"[,\s]+", ours[1] or "") if code]
    left = [code for code in codes if code.upper() not in words and code not in words]
    rewrite = Rewrite(script)
    if left and words:
        assert ours[1] is not None
        comment = text.replace(f"[{ours[1]}]", f"[{', '.join(left)}]")
        rewrite.replace(node.comment, cst.Comment(comment))
        return Proposal("safe", f"remove {words[0]} from the comment", rewrite.code())
    rewrite.replace(node, node.with_changes(comment=None, whitespace=cst.SimpleWhitespace("")))
    return Proposal("safe", "remove the comment", rewrite.code())
