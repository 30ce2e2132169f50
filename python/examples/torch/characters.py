"""
A language model of characters with linear attention
====================================================

Does a transformer whose attention is linear in the length of the text learn more than which letter follows which?
"""

import math
from pydoc_data.topics import topics

import torch
from torch import nn
from torch.nn import functional as F

from bochner.torch import LinearAttention

torch.manual_seed(0)
text = "".join(topics[name] for name in sorted(topics))[:200_000]
letters = sorted(set(text))
codes = torch.tensor([letters.index(letter) for letter in text])
train, test = codes[:180_000], codes[180_000:]
LENGTH, WIDTH, HEADS = 128, 64, 2


class Block(nn.Module):
    """Attention over what came before, then a layer for each place."""

    def __init__(self):
        super().__init__()
        self.attention = LinearAttention(WIDTH // HEADS, 64, random_state=0)
        self.ask, self.answer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layer = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.ask(self.norm(x)).chunk(3, dim=-1))
        found = self.attention(q, k, v, is_causal=True)
        x = x + self.answer(found.transpose(1, 2).flatten(2))
        return x + self.layer(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(letters), WIDTH), nn.Embedding(LENGTH, WIDTH)
        # The letter before, and the one before that, are seen by a short convolution.
        self.near = nn.Conv1d(WIDTH, WIDTH, 3)
        self.blocks = nn.Sequential(Block(), Block())
        self.scores = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(letters)))

    def forward(self, x):
        x = self.letters(x) + self.places.weight
        x = x + self.near(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2)
        return self.scores(self.blocks(x))


def batch(of, starts):
    rows = torch.stack([of[start : start + LENGTH + 1] for start in starts])
    return rows[:, :-1], rows[:, 1:]


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(150):
    x, following = batch(train, torch.randint(len(train) - LENGTH, (16,)))
    optimizer.zero_grad()
    F.cross_entropy(model(x).flatten(0, 1), following.flatten()).backward()
    optimizer.step()

# %%
# The baseline: how often each letter follows each, counted in the same text.

counts = torch.ones(len(letters), len(letters))
counts.index_put_((train[:-1], train[1:]), torch.ones(len(train) - 1), accumulate=True)
x, following = batch(test, range(0, len(test) - LENGTH, LENGTH))
pairs = F.nll_loss((counts / counts.sum(1, keepdim=True)).log()[x].flatten(0, 1), following.flatten()) / math.log(2)
with torch.no_grad():
    learned = F.cross_entropy(model(x).flatten(0, 1), following.flatten()) / math.log(2)
print(f"bits per letter of {x.numel()} unseen ones: {pairs:.2f} by counting pairs, {learned:.2f} by the model")
assert learned < pairs - 0.3
