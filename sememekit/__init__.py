"""Language models that know what words are made of: sememes inside encoders, output layers and lattices."""

import os

# Large tensors in large pages: torch asks the system for them where this is set before its first tensor. A gradient of
# 44,000 x 512 is then written in less than half the time (docs/results/self-organized.md, the self-organised softmax).
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.1.0"
