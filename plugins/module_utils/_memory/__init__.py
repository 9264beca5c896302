# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arithmetic of the memory plan: pure functions, no Ansible, no input or output, standard library only.

Private to this collection: may change at any time.

One file per concern, in the order in which a plan is made:

- ``units``: GiB, whole hundredths of utilization, the refusals
- ``config_keys``, ``layer_kinds``, ``layer_extras``, ``state_layers``, ``shape``: ``config.json`` to the layers that keep a cache
- ``kv_dtype``: bytes of one cached token, and what ``auto`` means for a checkpoint and a build
- ``layout``: layers to groups, bytes per block, blocks per request, tokens
- ``weights``: safetensors headers and index to bytes
- ``measured``: figures of an earlier start, and planning from them
- ``budget``, ``verdict``: one host, then the site
- ``startup_log``, ``cache_info``: what the engine says about itself
- ``compare``: plan against reality
- ``inputs``, ``wire``: all of it as plain data, for actions, filters and modules
"""
