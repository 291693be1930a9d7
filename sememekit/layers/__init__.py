"""Building blocks: dropout with shared masks, incidence sums, log-space reductions."""

from sememekit.layers.chosen_logits import ChosenLogits
from sememekit.layers.dropout import WeightDropped, shared_dropout
from sememekit.layers.grouped_topk import grouped_topk
from sememekit.layers.incidence import FixedTables, Incidence, segment_logsumexp
from sememekit.layers.lattice import weighted_sum
from sememekit.layers.linear_cross_entropy import linear_cross_entropy
from sememekit.layers.lstm_scan import four_gates, lstm_cell, lstm_scan
from sememekit.layers.shared import (
    BY_LOG_PROB,
    Linear,
    add_product,
    at_least_single,
    differentiable_once,
    evaluating,
    product_and_bias,
    product_dtype,
    training_counters,
    uniform_embedding,
)
