"""SPG503: prepared data sets and tables, written by methods of objects that nothing is known of."""

from __future__ import annotations

from tests.lint.rules.marked import agree

IMPORTS = """
            import os
            import pandas as pd
            import polars as pl
            import torch.distributed as dist
            from accelerate import Accelerator
            from datasets import Dataset, load_dataset, load_from_disk
"""


def test_prepared_sets() -> None:
    """A set or a table that the main process writes and all read, behind a test of the folder as well."""
    for writes, reads in (
        ("raw.save_to_disk(cache)", "load_from_disk(cache)"),
        ("raw.map(len).save_to_disk(dataset_path=cache)", "Dataset.load_from_disk(cache)"),
        ("load_dataset('text', split='train').save_to_disk(cache)", "load_from_disk(cache)"),
        ("raw.to_parquet(cache)", "load_dataset('parquet', data_files=cache)"),
        ("raw.to_csv(cache, index=False)", "pd.read_csv(cache)"),
        ("raw.write_parquet(cache)", "pl.read_parquet(cache)"),
    ):
        assert agree(
            f"""{IMPORTS}
            def prepared(accelerator: Accelerator, raw, cache):
                if accelerator.is_main_process and not os.path.isdir(cache):
                    {writes}
                return {reads}  # SPG503

            def ordered(accelerator: Accelerator, raw, cache):
                if accelerator.is_main_process and not os.path.isdir(cache):
                    {writes}
                accelerator.wait_for_everyone()
                return {reads}

            def first(accelerator: Accelerator, raw, cache):
                with accelerator.main_process_first():
                    if not os.path.isdir(cache):
                        {writes}
                    return {reads}

            def by_itself(raw, cache):
                if dist.get_rank() == 0:
                    {writes}
                    return {reads}
                return None

            def as_text(raw):
                if dist.get_rank() == 0:
                    print(raw.to_csv())
                return raw
            """,
            "SPG503",
        )
