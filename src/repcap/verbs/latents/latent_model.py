"""A transformers model that reads a text, and taps on its residual stream. Nothing is downloaded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from repcap.devices import resolve_device
from repcap.errors import InputError, MissingExtraError, RepcapError, SourceError
from repcap.sources.names import NOT_TEXT
from repcap.sources.package import package_path
from repcap.sources.remote.hub_environment import check_environment
from repcap.sources.spec import parse_spec

RAW, NORMED = "raw", "normed"
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
)

OnState = Callable[[int, str, torch.Tensor], None]
"""Called with (layer, `raw` or `normed`, states (tokens, d)). Layer 0 is what enters the first block."""


class Loaded(NamedTuple):
    """A model in evaluation mode and its tokenizer (None where ids are given)."""

    name: str
    model: nn.Module
    tokenizer: Any | None


def load(source: Any, device: str = "auto", dtype: str = "float32") -> Loaded:
    """The model behind `source`, without a language-model head, on a device.

    source: a directory or a GGUF file as transformers reads them, pkg://module/file.gguf, or the name of a Hub
    checkpoint that is in the local cache; or a module in memory, taken as it is.

    Raises
    ------
    MissingExtraError
        if transformers is not installed.
    SourceError
        if transformers cannot load it from this machine's files alone.
    """
    check_environment()  # transformers imports huggingface_hub
    try:
        import transformers  # noqa: F401 - only to say early, and in one line, that it is missing
    except ImportError as error:
        raise MissingExtraError("repcap latents", "latents") from error
    where = resolve_device(device)
    if isinstance(source, torch.nn.Module):
        return Loaded(type(source).__name__, source, None)
    place, options = _place(str(source))
    with _silent():
        model = _from_pretrained(source, "AutoModel", place, dtype=getattr(torch, dtype), **options)
        tokenizer = _from_pretrained(source, "AutoTokenizer", place, **options)
    return Loaded(str(source), model.to(where).eval(), tokenizer)


def _place(source: str) -> tuple[str, dict[str, Any]]:
    """(directory or repository, options) for transformers."""
    spec = parse_spec(source)
    if spec.tensor is not None:
        raise InputError(f"{source}: latents need a whole model, not one tensor")
    if spec.scheme == "url":
        raise InputError(f"{source}: latents are read from a local model; download it first")
    if spec.scheme == "hub":
        options = {"revision": spec.revision} if spec.revision else {}
        return spec.location, options | ({"subfolder": spec.folder} if spec.folder else {})
    path = package_path(spec.location, spec.text) if spec.scheme == "package" else Path(spec.location)
    if path.is_dir():
        ggufs = sorted(item.name for item in path.glob("*.gguf"))
        whole = (path / "config.json").exists()
        return str(path), {} if whole or len(ggufs) != 1 else {"gguf_file": ggufs[0]}
    if path.suffix == ".gguf":
        return str(path.parent), {"gguf_file": path.name}
    raise InputError(f"{source} is one file of weights: give the model's directory, or a .gguf file")


def _from_pretrained(source: Any, auto: str, place: str, **options: Any) -> Any:
    import transformers

    here = Path(place)
    if auto == "AutoTokenizer" and "gguf_file" not in options and here.is_dir():
        here = here / options.get("subfolder", "")
        if not any((here / name).exists() for name in TOKENIZER_FILES):
            raise SourceError(f"{source} has no tokenizer (tokenizer.json): save the model's tokenizer beside it")
    try:
        return getattr(transformers, auto).from_pretrained(place, local_files_only=True, **options)
    except Exception as error:  # transformers raises whatever its parts raise
        what = "tokenizer" if auto == "AutoTokenizer" else "model"
        reason = " ".join(str(error).split())[:300]
        raise SourceError(f"transformers cannot load the {what} of {source} from local files: {reason}") from error


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without transformers' own progress bars and warnings."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(_Nowhere()):  # some bars are tqdm's own
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def encode(tokenizer: Any, pieces: Iterable[str], most: int | None = None) -> tuple[list[int], np.ndarray]:
    """(ids to put in front of every window, ids of the text, int64): the tokenizer's beginning of a sequence, if any.

    No more pieces are read than it takes for `most` ids. Memory: 8 bytes an id, and one piece.
    """
    bos = getattr(tokenizer, "bos_token_id", None)
    found, count = [np.empty(0, dtype=np.int64)], 0
    with _silent():  # the text may be longer than the model's context: it is cut into windows
        front = [int(i) for i in tokenizer("")["input_ids"]][:1]
        for piece in pieces:
            found.append(np.asarray(tokenizer(piece, add_special_tokens=False)["input_ids"], dtype=np.int64))
            count += len(found[-1])
            if most is not None and count >= most:
                break
    return (front if bos is not None and front == [bos] else []), np.concatenate(found)[:most]


def max_window(model: nn.Module) -> int | None:
    """The longest context that the configuration names, or None."""
    config = _text_config(model)
    found = getattr(config, "max_position_embeddings", None)
    return int(found) if isinstance(found, int) and found > 0 else None


def _text_config(model: nn.Module) -> Any:
    config: Any = getattr(model, "config", None)
    getter = getattr(config, "get_text_config", None)
    return getter() if callable(getter) else config


class Taps:
    """Hooks on the residual stream of a decoder: what enters each block and what leaves the last, and each normed.

    A `normed` state is what the first normalisation of a block makes of the very state that enters the block (blocks
    that normalise elsewhere have none), and what the final normalisation makes of the last state.

    Raises
    ------
    SourceError
        if the model has no list of blocks that matches its configuration, or is an encoder-decoder.
    """

    def __init__(self, model: nn.Module, on_state: OnState) -> None:
        self._model, self._on_state = model, on_state
        self._training = model.training
        self._wanted: frozenset[int] = frozenset()
        self._handles: list[Any] = []
        self._current: tuple[int, Any] = (-1, None)
        self._normed: set[int] = set()
        self.blocks = find_blocks(model)
        self.layers = len(self.blocks) + 1

    def __enter__(self) -> Taps:
        self._model.eval()  # no dropout: both passes must see the same states
        inside: set[int] = set()
        for layer, block in enumerate(self.blocks):
            inside.update(map(id, block.modules()))
            self._handles.append(block.register_forward_pre_hook(self._entering(layer), with_kwargs=True))
            for child in block.children():
                if is_norm(child):
                    self._handles.append(child.register_forward_hook(self._norm))
        self._handles.append(self.blocks[-1].register_forward_hook(self._leaving))
        for module in self._model.modules():
            if id(module) not in inside and is_norm(module):
                self._handles.append(module.register_forward_hook(self._norm))
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._model.train(self._training)

    def run(self, ids: np.ndarray, layers: Sequence[int]) -> None:
        """One window of token ids, (tokens,) int64, through the model; states of `layers` go to `on_state`.

        Raises
        ------
        SourceError
            if the model fails on it (out of memory, ids that it does not take alone, ...).
        """
        self._wanted, self._normed, self._current = frozenset(layers), set(), (-1, None)
        device = next(self._model.parameters()).device
        try:
            with torch.no_grad():  # not inference_mode: its tensors could not be added up later
                self._model(input_ids=torch.from_numpy(ids)[None].to(device), use_cache=False)
        except RepcapError:
            raise
        except Exception as error:  # a model raises whatever its parts raise
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise SourceError(f"{type(self._model).__name__} fails on {len(ids)} token ids: {reason}") from error
        self._current = (-1, None)

    def _entering(self, layer: int) -> Callable[..., None]:
        def hook(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._state(layer, args[0] if args else kwargs["hidden_states"])

        return hook

    def _leaving(self, _module: Any, _args: Any, output: Any) -> None:
        self._state(len(self.blocks), output[0] if isinstance(output, (tuple, list)) else output)

    def _norm(self, _module: Any, args: tuple[Any, ...], output: Any) -> None:
        layer, state = self._current
        if args and args[0] is state and layer not in self._normed:
            self._normed.add(layer)
            if layer in self._wanted:
                self._on_state(layer, NORMED, output[0].float().cpu())

    def _state(self, layer: int, state: torch.Tensor) -> None:
        self._current = (layer, state)
        if layer in self._wanted:
            self._on_state(layer, RAW, state[0].float().cpu())


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a normalisation, by the name of its class."""
    return "norm" in type(module).__name__.lower()


def find_blocks(model: nn.Module) -> Sequence[nn.Module]:
    """The blocks of a model's text part: its first ModuleList as long as the configuration's number of layers."""
    config = _text_config(model)
    if getattr(config, "is_encoder_decoder", False):
        raise SourceError(f"{type(model).__name__} is an encoder-decoder: it has two residual streams, give a decoder")
    count = getattr(config, "num_hidden_layers", None)
    if not isinstance(count, int):
        raise SourceError(f"{type(model).__name__} does not say num_hidden_layers: no transformers model of a decoder")
    lists = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == count and not NOT_TEXT.search(name)
    ]
    if not lists:
        raise SourceError(f"{type(model).__name__} has no list of {count} blocks, as its configuration says")
    return list(lists[0])
