"""
When did the stream change?
===========================

A monitor keeps two averages of random features, one that forgets fast and one that forgets slowly. Does it keep the rate of false
alarms that was asked for, and how soon does it see a change of five columns out of fifty?
"""

import numpy as np
from matplotlib import pyplot

from bochner.stats import DriftMonitor

rng = np.random.default_rng(0)
rate = 1e-3
monitor = DriftMonitor(false_alarm_rate=rate, random_state=0).fit(rng.normal(size=(1000, 50)))

# %%
# Forty thousand rows of one distribution, then some with five means moved by a standard deviation.

quiet = monitor.update(rng.normal(size=(40_000, 50)))
print(f"false alarms: {quiet.sum()}, expected {rate * len(quiet):.0f}")
assert abs(quiet.sum() / (rate * len(quiet)) - 1) < 0.2

statistics, thresholds, alarms = [], [], []
for i in range(600):
    row = rng.normal(size=50)
    row[:5] += i >= 300
    alarms.append(bool(monitor.update(row)[0]))
    statistics.append(monitor.statistic_)
    thresholds.append(monitor.threshold_)
seen = alarms[300:].index(True)
print(f"seen after {seen + 1} rows")
assert seen < 100

# %%
figure, ax = pyplot.subplots(layout="constrained")
ax.plot(statistics, label="distance of the averages")
ax.plot(thresholds, "--", label="threshold")
ax.axvline(300, color="0.7", label="change")
ax.set(xlabel="row", ylabel="distance", title="five of fifty columns change")
ax.legend()
