"""Why a model expects what it expects, one file for each kind of run, and how well such explanations fit what came."""
