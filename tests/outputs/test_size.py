"""The size of the installed program. Every CI job that uses it downloads it, and a feature of a dependency can add
megabytes that no other test notices."""

import os
import unittest

KARAT = os.environ["KARAT"]
MAX_BYTES = 35_000_000


class Size(unittest.TestCase):
    def test_the_program_has_at_most_35_mb(self):
        size = os.path.getsize(KARAT)
        self.assertLessEqual(size, MAX_BYTES, "`cargo bloat --release --crates` shows what takes space")


if __name__ == "__main__":
    unittest.main()
