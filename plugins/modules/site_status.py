#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: site_status
short_description: Show a site's state, once or again and again
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Shows a text that P(gb10.vllm.status_table#filter) made. With O(watch) it then runs the command that was given to
    C(ansible-playbook) once more and shows what that finds, in place of the text before where the output goes to a terminal.
  - Ctrl-C ends it. JSON is shown as one object per line when there are several.
  - Runs completely on the controller. Changes nothing but O(to).
extends_documentation_fragment:
  - gb10.vllm._attributes.controller
options:
  text:
    description: What to show.
    type: str
    required: true
  watch:
    description: Pause between two looks, in seconds. 0 shows the text once.
    type: float
    default: 0
  count:
    description: How many looks there are in all; 0 for no limit.
    type: int
    default: 0
  to:
    description: Write the text into this file instead. For the looks that this action makes itself.
    type: path
"""

EXAMPLES = r"""
- name: Show the site
  gb10.vllm.site_status:
    text: "{{ engines | gb10.vllm.status_table(proxies) }}"
    watch: 5
"""

RETURN = r"""
looks:
  description: How often the state was shown.
  type: int
  returned: success
text:
  description: What was shown, when it was shown once.
  type: str
  returned: when O(watch) is 0
"""
