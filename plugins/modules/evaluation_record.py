#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: evaluation_record
short_description: Keep the record of an evaluation, and read all of them
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Writes one record of M(gb10.vllm.evaluate) as a file of its own and flushes it to the disk, and returns all records.
  - Runs on the first proxy, so that nothing that matters is lost with the controller.
  - Reads and writes only files in O(folder). Never changes or removes a record; one that is there already is refused.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Writes nothing.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: A record is written once; the second time is refused.
options:
  folder:
    description: Folder of the records.
    type: path
    default: /var/lib/gb10-vllm/evaluations
  record:
    description: RV(gb10.vllm.evaluate#module:record) of an evaluation. Empty means to read only.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Read the records
  gb10.vllm.evaluation_record:
  register: kept

- name: Keep a record
  gb10.vllm.evaluation_record:
    record: "{{ evaluated.record }}"
"""

RETURN = r"""
path:
  description: The file that was written, empty when none was.
  type: str
  returned: always
records:
  description: All records, oldest first.
  type: list
  elements: dict
  returned: always
broken:
  description: Names of files in the folder that are no records.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _evaluations


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "default": _evaluations.FOLDER},
            "record": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    folder, record, path = module.params["folder"], module.params["record"], ""
    try:
        if record and not module.check_mode:
            path = _evaluations.keep(folder, record)
        records, broken = _evaluations.read(folder)
    except (OSError, _evaluations.RecordError) as error:
        module.fail_json(msg=f"the records of evaluations in {folder} cannot be used: {error}")
    module.exit_json(changed=bool(record), path=path, records=records, broken=broken)


if __name__ == "__main__":
    main()
