"""
Bilinear pooling in a network
=============================

Do second moments of a network's descriptors tell more than their means?
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

from bochner.torch import CompactBilinearPooling

images, digits = load_digits(return_X_y=True)
images = torch.tensor(images.reshape(-1, 1, 8, 8) / 16.0, dtype=torch.float32)
train, test, y_train, y_test = train_test_split(images, torch.tensor(digits), train_size=400, random_state=0)


class Mean(nn.Module):
    """The baseline: the mean of the descriptors."""

    def forward(self, descriptors):
        return descriptors.mean(-2)


def accuracy(pooling, width):
    """Of a small network with this pooling, trained for some seconds."""
    torch.manual_seed(0)
    convolutions = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3))
    layer = nn.Linear(width, 10)
    parameters = [*convolutions.parameters(), *layer.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)

    def scores(x):
        pooled = pooling(convolutions(x).flatten(2).transpose(1, 2))
        # As usual for sums of products: signed roots of unit length.
        return layer(10.0 * F.normalize(pooled.sign() * (pooled.abs() + 1e-6).sqrt(), dim=-1))

    for _ in range(60):
        for part in torch.randperm(len(train)).split(100):
            optimizer.zero_grad()
            F.cross_entropy(scores(train[part]), y_train[part]).backward()
            optimizer.step()
    with torch.no_grad():
        return float((scores(test).argmax(-1) == y_test).float().mean())


# %%
# The sketch has 256 numbers, as many as the outer products of 16 channels; with 512 channels it would still have as many.

means = accuracy(Mean(), 16)
bilinear = accuracy(CompactBilinearPooling(16, n_components=256, random_state=0), 256)
print(f"accuracy on {len(test)} images: {means:.3f} with means, {bilinear:.3f} with bilinear pooling")
assert bilinear > means
