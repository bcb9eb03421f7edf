"""Known defects injected into functions of real packages: how many does the linter find?"""
