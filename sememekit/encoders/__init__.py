"""Recurrent encoders: one file each, found by name in ``ENCODERS``."""

ENCODERS = {
    "gru": "sememekit.encoders.gru:GRU",
    "lstm": "sememekit.encoders.lstm:LSTM",
}
"""name -> "module:Class"; ``--encoder package.module:Class`` takes an encoder of your own."""

__all__ = ["ENCODERS"]
