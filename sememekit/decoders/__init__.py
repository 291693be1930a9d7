"""Output layers: one file each, found by name in ``DECODERS``."""

DECODERS = {
    "adaptive": "sememekit.decoders.adaptive:Adaptive",
    "class_hsm": "sememekit.decoders.class_hsm:ClassHSM",
    "differentiated": "sememekit.decoders.differentiated:Differentiated",
    "moc": "sememekit.decoders.mos:MoC",
    "mos": "sememekit.decoders.mos:MoS",
    "mos_sdlm": "sememekit.decoders.mos_sdlm:MoSSDLM",
    "sampled": "sememekit.decoders.softmax:Sampled",
    "sdlm": "sememekit.decoders.sdlm:SDLM",
    "self_organized": "sememekit.decoders.self_organized:SelfOrganized",
    "softmax": "sememekit.decoders.softmax:Softmax",
    "tree_hsm": "sememekit.decoders.tree_hsm:TreeHSM",
}
"""name -> "module:Class"; ``--decoder package.module:Class`` takes a decoder of your own."""
