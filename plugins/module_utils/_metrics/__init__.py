# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engine metrics of every copy, read one by one and summed: standard library only, pure but for ``fetch``.

Private to this collection: may change at any time.

One file per step, in the order of the way of a figure:

- ``fetch``: the page of one copy, whole or refused; who answered
- ``text``: the page as samples, or why it is none
- ``names``: what vLLM calls things, in every version that people run
- ``reading``: the samples as one reading, the same for every version
- ``histogram``: sums, differences and quantiles of buckets
- ``span``: what a copy did between two readings; its state over many
- ``total``: all copies together
- ``figures``: rates, shares and times for people, only where enough was counted

A figure that a build does not have or that cannot be trusted is None: unknown, never 0.
"""
