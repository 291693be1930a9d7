"""Building blocks: dropout with shared masks, incidence sums, log-space reductions, tables of vectors that processes divide."""

from sememekit.layers.chosen_logits import ChosenLogits
from sememekit.layers.counters import training_counters
from sememekit.layers.differentiable_once import BY_LOG_PROB, differentiable_once
from sememekit.layers.dropout import shared_dropout
from sememekit.layers.embedding import WordVectors, uniform_embedding
from sememekit.layers.evaluating import evaluating
from sememekit.layers.fixed_tables import FixedTables
from sememekit.layers.grouped_cross_entropy import Groups, grouped_cross_entropy, within_groups
from sememekit.layers.grouped_topk import grouped_topk
from sememekit.layers.gru_scan import gru_scan
from sememekit.layers.incidence import Incidence
from sememekit.layers.lattice import (
    backward_scores,
    best_path,
    edge_posteriors,
    ending_edges,
    forward_scores,
    log_marginal,
    sample_path,
)
from sememekit.layers.linear_cross_entropy import linear_cross_entropy
from sememekit.layers.lstm_cell import lstm_cell
from sememekit.layers.lstm_scan import lstm_scan
from sememekit.layers.merge import rows_of, weighted_sum
from sememekit.layers.mogrifier_scan import GateMap, mogrifier_scan
from sememekit.layers.precision import Linear, add_product, at_least_single, product_and_bias, product_dtype
from sememekit.layers.segments import segment_logsumexp
from sememekit.layers.shards import WordShard, note_rows, rows_of_ranks, whole_size
from sememekit.layers.weight_drop import WeightDropped

__all__ = [
    "BY_LOG_PROB",
    "ChosenLogits",
    "FixedTables",
    "GateMap",
    "Groups",
    "Incidence",
    "Linear",
    "WeightDropped",
    "WordShard",
    "WordVectors",
    "add_product",
    "at_least_single",
    "backward_scores",
    "best_path",
    "differentiable_once",
    "edge_posteriors",
    "ending_edges",
    "evaluating",
    "forward_scores",
    "grouped_cross_entropy",
    "grouped_topk",
    "gru_scan",
    "linear_cross_entropy",
    "log_marginal",
    "lstm_cell",
    "lstm_scan",
    "mogrifier_scan",
    "note_rows",
    "product_and_bias",
    "product_dtype",
    "rows_of",
    "rows_of_ranks",
    "sample_path",
    "segment_logsumexp",
    "shared_dropout",
    "training_counters",
    "uniform_embedding",
    "weighted_sum",
    "whole_size",
    "within_groups",
]
