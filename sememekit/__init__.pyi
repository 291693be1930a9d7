"""The public names for type checkers; see ``__init__.py``."""

from sememekit import nn as nn
from sememekit.analysis.compare_runs import compare as compare
from sememekit.analysis.evaluate import evaluate as evaluate
from sememekit.data.prepared import PreparedData as PreparedData
from sememekit.decoders import DECODERS as DECODERS
from sememekit.decoders.base import Resources as Resources
from sememekit.decoders.differentiated import Differentiated as Differentiated
from sememekit.decoders.mos import MoC as MoC
from sememekit.decoders.mos import MoS as MoS
from sememekit.decoders.mos_sdlm import MoSSDLM as MoSSDLM
from sememekit.decoders.sdlm import SDLM as SDLM
from sememekit.decoders.self_organized import SelfOrganized as SelfOrganized
from sememekit.encoders import ENCODERS as ENCODERS
from sememekit.errors import SememekitError as SememekitError
from sememekit.jobs.build_sememe_graph import build_sememe_graph as build_sememe_graph
from sememekit.jobs.preprocess import preprocess as preprocess
from sememekit.jobs.train import train as train
from sememekit.notebook.attacks import attack_classifier as attack_classifier
from sememekit.notebook.run import Run as Run
from sememekit.notebook.run import explain as explain
from sememekit.notebook.run import load_run as load_run
from sememekit.prepare.settings import PreprocessSettings as PreprocessSettings
from sememekit.sememes import SememeGraph as SememeGraph
from sememekit.sememes import build_graph as build_graph
from sememekit.sememes import open_lexicon as open_lexicon
from sememekit.text.vocabulary import Vocabulary as Vocabulary

__version__: str
