"""Convert and export fitted models to other packages."""

from sklearn_era.interop._lightgbm import to_lightgbm_text
from sklearn_era.interop._onnx import register_onnx_converters
from sklearn_era.interop._sklearn import to_sklearn

__all__ = ["register_onnx_converters", "to_lightgbm_text", "to_sklearn"]
