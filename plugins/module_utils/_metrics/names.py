# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What vLLM calls things, in every version that people run; the newest name first.

Private to this collection: may change at any time. Pure.

A build may show an old name beside the new one (0.10 does): the first one that it has is taken, they are never added.
"""

from __future__ import annotations

COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total",),
    "generation_tokens": ("vllm:generation_tokens_total",),
    "preemptions": ("vllm:num_preemptions_total",),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "drafts": ("vllm:spec_decode_num_drafts_total",),
    "draft_tokens": ("vllm:spec_decode_num_draft_tokens_total",),
    "accepted_tokens": ("vllm:spec_decode_num_accepted_tokens_total",),
}
# By the label finished_reason: stop, length, abort, error, repetition. Those that ended with a 500 may be in none.
REQUESTS = "vllm:request_success_total"
GAUGES = {"running": ("vllm:num_requests_running",), "waiting": ("vllm:num_requests_waiting",)}
# A share, 0 to 1, of each engine of the process.
KV_USE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
HISTOGRAMS = {
    "ttft": ("vllm:time_to_first_token_seconds",),
    # Not request_time_per_output_token_seconds: that one counts requests, these count tokens.
    "inter_token": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "e2e": ("vllm:e2e_request_latency_seconds",),
    "queue": ("vllm:request_queue_time_seconds",),
}
# When the process and when its first series began; with several API servers in one process neither is there.
STARTED = "process_start_time_seconds"
BORN = ("vllm:generation_tokens_created", "vllm:prompt_tokens_created")

WANTED = frozenset(
    [
        *(name for table in (COUNTERS, GAUGES) for names in table.values() for name in names),
        *(f"{name}_{part}" for names in HISTOGRAMS.values() for name in names for part in ("bucket", "count", "sum")),
        *(REQUESTS, *KV_USE, STARTED, *BORN),
    ]
)
