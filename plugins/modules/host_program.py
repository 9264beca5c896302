#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_program
short_description: Put one of the collection's own services on a host, as one file
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Packs a program of this collection and the modules it is made of into one archive that C(python3 FILE) runs, and copies it to
    the host. The same sources always give the same file, so it changes only when the program does.
  - Reads nothing on the host but that file, and changes only it and its folder. Starting the service is the role's business.
  - The archive is not compressed; C(unzip -p FILE) shows what is in it.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Nobody reads the difference of two archives.
  idempotent:
    support: full
options:
  program:
    description: Name of the program.
    type: str
    required: true
  dest:
    description: Where the file is to be, C(/usr/local/lib/gb10-vllm/PROGRAM.pyz) when left out.
    type: path
"""

EXAMPLES = r"""
- name: Install the watchdog's program
  gb10.vllm.host_program:
    program: watchdog
"""

RETURN = r"""
dest:
  description: Where the file is.
  type: str
  returned: success
modules:
  description: What the program is made of, as paths below the collection's C(module_utils).
  type: list
  elements: str
  returned: success
"""

# The action plugin of the same name does the work on the controller.
