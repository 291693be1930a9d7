"""Encoders: one file each, found by name in ``ENCODERS``."""

ENCODERS = {
    "awd_lstm": "sememekit.encoders.awd_lstm:AWDLSTM",
    "bigru": "sememekit.encoders.bidirectional:BiGRU",
    "bilstm": "sememekit.encoders.bidirectional:BiLSTM",
    "gru": "sememekit.encoders.gru:GRU",
    "hf": "sememekit.encoders.pretrained:Pretrained",
    "lattice_lstm": "sememekit.encoders.lattice_lstm:LatticeLSTM",
    "lstm": "sememekit.encoders.lstm:LSTM",
    "mogrifier": "sememekit.encoders.mogrifier:Mogrifier",
    "transformer": "sememekit.encoders.transformer:Transformer",
}
"""name -> "module:Class"; ``--encoder package.module:Class`` takes an encoder of your own."""
