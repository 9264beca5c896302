# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that imports pydantic, a library of the controller; without it everything still imports.

Private to this collection: may change at any time.
"""

from __future__ import annotations

import traceback
from typing import Any

MISSING: str | None = None

try:
    from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
except ImportError:
    MISSING = traceback.format_exc()

    class BaseModel:  # type: ignore[no-redef]
        """Stands in where pydantic is missing; `require` fails before it is used."""

    class ValidationError(Exception):  # type: ignore[no-redef]
        """Stands in where pydantic is missing."""

    def ConfigDict(**_options: Any) -> Any:  # type: ignore[no-redef]
        return {}

    def Field(*_arguments: Any, **_options: Any) -> Any:  # type: ignore[no-redef]
        return None

    def field_validator(*_arguments: Any, **_options: Any) -> Any:  # type: ignore[no-redef]
        return lambda function: function

    def model_validator(*_arguments: Any, **_options: Any) -> Any:  # type: ignore[no-redef]
        return lambda function: function


def missing_message() -> str | None:
    """What to say when the library is missing on the controller, else None."""
    if MISSING is None:
        return None
    return "pydantic is missing in the Python that runs ansible-playbook: install it there (`python3 -m pip install 'pydantic>=2.7'`)"


__all__ = [
    "BaseModel",
    "ConfigDict",
    "Field",
    "ValidationError",
    "field_validator",
    "missing_message",
    "model_validator",
]
