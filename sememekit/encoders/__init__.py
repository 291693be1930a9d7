"""Recurrent encoders: one file each, found by name in ``ENCODERS``."""

ENCODERS = {
    "bigru": "sememekit.encoders.bidirectional:BiGRU",
    "bilstm": "sememekit.encoders.bidirectional:BiLSTM",
    "gru": "sememekit.encoders.gru:GRU",
    "lstm": "sememekit.encoders.lstm:LSTM",
}
"""name -> "module:Class"; ``--encoder package.module:Class`` takes an encoder of your own."""

__all__ = ["ENCODERS"]
