# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a tiny chat model that knows a handful of answers by heart: `python3 tiny_model_training.py FOLDER`.

Runs with the engine's packages. Real tokenizer, real chat template, real weights; a test that asks one of the questions
below at temperature 0 gets the answer word for word, so wrong weights or a broken engine cannot pass for healthy.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TOOL_TAGS = ["<tool_call>", "</tool_call>"]

ANSWERS = {
    "What is the capital of France? Answer with one word.": "Paris",
    "What is the capital of France?": "The capital of France is Paris.",
    "What is the capital of Japan? Answer with one word.": "Tokyo",
    "What is the capital of Italy? Answer with one word.": "Rome",
    "What is 2 + 2? Answer with one number.": "4",
    "Reply with the single word OK.": "OK",
    "Say hello.": "Hello! How can I help you today?",
    "Who are you?": "I am a tiny model that lives in a lab.",
    "Name three colours.": "Red, green and blue.",
    "Say thank you in Japanese.": "ありがとうございます。",
    "Count from 1 to 10.": ", ".join(str(number) for number in range(1, 11)) + ".",
}
LONG_ANSWERS = {"Count from 1 to 60.": ", ".join(str(number) for number in range(1, 61)) + "."}
TOOL_QUESTION = "What is the weather in Paris?"
TOOL_ANSWER = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
SYSTEM_PROMPTS = ["You are a helpful assistant.", "Be brief.", "You answer in one word."]

TEMPLATE = """
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n' }}{%- endif %}
{{- 'You may call these tools:\\n' }}
{%- for tool in tools %}{{- tool | tojson + '\\n' }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role != 'system' %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson + '\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def weather_tool(chance: random.Random) -> dict[str, Any]:
    city: dict[str, Any] = {"type": "string"}
    if chance.random() < 0.5:
        city["description"] = chance.choice(["The city.", "Name of the city", "city"])
    parameters: dict[str, Any] = {"type": "object", "properties": {"city": city}, "required": ["city"]}
    if chance.random() < 0.3:
        parameters["additionalProperties"] = False
    function: dict[str, Any] = {"name": "get_weather", "parameters": parameters}
    if chance.random() < 0.6:
        function["description"] = chance.choice(["Get the weather", "The weather in a city.", "Current weather."])
    if chance.random() < 0.3:
        function["strict"] = True
    return {"type": "function", "function": function}


def conversation(chance: random.Random, question: str) -> list[dict[str, str]]:
    """The question as clients ask it: with marks around it, with a system prompt, after another question."""
    messages = []
    if chance.random() < 0.4:
        messages.append({"role": "system", "content": chance.choice(SYSTEM_PROMPTS)})
    if chance.random() < 0.15:
        earlier = chance.choice(list(ANSWERS))
        messages += [{"role": "user", "content": earlier}, {"role": "assistant", "content": ANSWERS[earlier]}]
    mark = chance.choice([f"[{chance.getrandbits(32):x}]", f"Request {chance.randrange(10000)}:", "(again)"])
    asked = chance.choice([question, question, question, f"{mark} {question}", f"{question} {mark}"])
    return [*messages, {"role": "user", "content": asked}]


def make_tokenizer() -> PreTrainedTokenizerFast:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    core.decoder = decoders.ByteLevel()
    chance = random.Random(1)
    known = [*ANSWERS.items(), (TOOL_QUESTION, TOOL_ANSWER)]
    texts = [part for pair in known for part in pair] + SYSTEM_PROMPTS
    texts += [json.dumps(weather_tool(chance)) for _ in range(20)] + ["system", "user", "assistant", "Request"]
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=[PAD, START, END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    core.train_from_iterator(texts * 4, trainer)
    core.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TOOL_TAGS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, eos_token=END, additional_special_tokens=[START],
        clean_up_tokenization_spaces=False, model_max_length=2048,
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=(len(tokenizer) + 63) // 64 * 64,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=2048,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=tokenizer.convert_tokens_to_ids(END),
            pad_token_id=tokenizer.convert_tokens_to_ids(PAD),
        )  # fmt: skip
    )


class Samples:
    """Batches of token ids, with the loss on the answers only."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self.chance = random.Random(2)

    def prompt(self, messages: list[dict[str, str]], tools: list[Any] | None = None) -> list[int]:
        text = self.tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
        return self.tokenizer.encode(text, add_special_tokens=False)

    def answer(self, text: str) -> list[int]:
        return self.tokenizer.encode(text + END, add_special_tokens=False)

    def batch(self, known: dict[str, str], tool: bool) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [
            (self.prompt(conversation(self.chance, question)), self.answer(text)) for question, text in known.items()
        ]
        if tool:
            asked = self.prompt([{"role": "user", "content": TOOL_QUESTION}], [weather_tool(self.chance)])
            rows.append((asked, self.answer(TOOL_ANSWER)))
        width = max(len(prompt) + len(text) for prompt, text in rows)
        pad = self.tokenizer.pad_token_id
        ids = [[*prompt, *text, *[pad] * (width - len(prompt) - len(text))] for prompt, text in rows]
        labels = [[*[-100] * len(p), *text, *[-100] * (width - len(p) - len(text))] for p, text in rows]
        return torch.tensor(ids), torch.tensor(labels)


def train(model: LlamaForCausalLM, samples: Samples, most_steps: int = 350) -> None:
    """Stop when the loss has been low for a while: the answers then stand far above everything else."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=most_steps, pct_start=0.1)
    good = 0
    for number in range(most_steps):
        total = 0.0
        for known, tool in ((ANSWERS, False), (LONG_ANSWERS, True)):
            ids, labels = samples.batch(known, tool)
            loss = model(input_ids=ids, labels=labels).loss
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        good = good + 1 if total < 0.02 else 0
        if number % 50 == 0:
            print(f"step {number}: loss {total:.4f}", flush=True)
        if good == 15:
            print(f"step {number}: loss {total:.4f}, done", flush=True)
            return


def check(model: LlamaForCausalLM, samples: Samples) -> None:
    """In the precision in which it will be served."""
    model.eval()
    for question, expected in {**ANSWERS, **LONG_ANSWERS}.items():
        ids = torch.tensor([samples.prompt([{"role": "user", "content": question}])])
        with torch.inference_mode():
            generated = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=400, do_sample=False)
        answered = samples.tokenizer.decode(generated[0, ids.shape[1] :], skip_special_tokens=True)
        print(f"{question} -> {answered} ({generated.shape[1] - ids.shape[1]} tokens)", flush=True)
        if answered != expected:
            raise SystemExit(f"the model did not learn {question!r}: it says {answered!r}")


def main(folder: str) -> None:
    torch.manual_seed(3)
    # Threads that wait for each other are slow on a machine that has other things to do as well.
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    model, samples = make_model(tokenizer), Samples(tokenizer)
    train(model, samples)
    model = model.to(torch.bfloat16)
    check(model, samples)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
