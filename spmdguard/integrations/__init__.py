"""Thin adapters to training frameworks; each imports its framework only where it is used."""
