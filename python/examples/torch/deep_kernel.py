"""
A deep kernel
=============

Does a network in front of a Gaussian process, trained by the marginal likelihood, find what a single length scale cannot say?
"""

import math

import torch
from torch import nn

from bochner.torch import FourierFeatures

torch.manual_seed(0)


def target(x):
    """Fast on one side of an oblique plane and slow on the other."""
    along = x[:, 0] + x[:, 1]
    return torch.sin(torch.where(along > 0, 12.0 * along, 2.0 * along))


x_train, x_test = 2.0 * torch.rand(500, 4) - 1.0, 2.0 * torch.rand(1000, 4) - 1.0
y_train, y_test = target(x_train) + 0.1 * torch.randn(500), target(x_test)


class Process(nn.Module):
    """A Gaussian process on features of what a network makes of rows."""

    def __init__(self, network, width):
        super().__init__()
        self.network = network
        self.features = FourierFeatures(width, n_components=200, length_scale=1.0, learn_length_scale=True, random_state=0)
        self.log_scale, self.log_noise = nn.Parameter(torch.tensor(0.0)), nn.Parameter(torch.tensor(-1.0))

    def solved(self, x, y):
        z = self.log_scale.exp() * self.features(self.network(x))
        noise = (2.0 * self.log_noise).exp()
        root = torch.linalg.cholesky(z.T @ z / noise + torch.eye(z.shape[1]))
        return root, torch.linalg.solve_triangular(root, (z.T @ y / noise)[:, None], upper=False), noise

    def loss(self, x, y):
        """Minus the marginal likelihood, for each row."""
        root, half, noise = self.solved(x, y)
        logs = 2.0 * root.diagonal().log().sum() + len(y) * (noise.log() + math.log(2.0 * math.pi))
        return 0.5 * (y.square().sum() / noise - half.square().sum() + logs) / len(y)

    def mean(self, x):
        root, half, _ = self.solved(x_train, y_train)
        coefficients = torch.linalg.solve_triangular(root.T, half, upper=True)
        return (self.log_scale.exp() * self.features(self.network(x)) @ coefficients)[:, 0]


def error(network, width):
    """Root mean squared error on other rows of a process whose parameters have all been trained."""
    process = Process(network, width)
    optimizer = torch.optim.Adam(process.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        process.loss(x_train, y_train).backward()
        optimizer.step()
    with torch.no_grad():
        return float((process.mean(x_test) - y_test).square().mean().sqrt())


# %%
# The baseline has the same features and the same likelihood, and learns the length scale.

plain = error(nn.Identity(), 4)
deep = error(nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2)), 2)
print(f"root mean squared error: {plain:.3f} of rows themselves, {deep:.3f} behind a network")
assert deep < 0.8 * plain
