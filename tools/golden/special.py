"""Reference values of special functions and kernels, by mpmath with 40 digits.

Run with any Python that has mpmath; prints crates/bochner/src/special/golden.tsv.
"""

import mpmath as mp

mp.mp.dps = 40


def table(name, rows):
    for row in rows:
        print(name, *(repr(float(v)) for v in row), sep="\t")


orders = ["0.1", "0.5", "0.75", "1", "1.3", "2.5", "3", "7.2", "33.3", "150", "2000"]
arguments = ["1e-8", "1e-3", "0.1", "1", "3.7", "20", "150", "600"]


def matern(nu, z):
    nu, z = mp.mpf(nu), mp.mpf(z)
    return mp.power(2, 1 - nu) / mp.gamma(nu) * z**nu * mp.besselk(nu, z)


rows = []
for nu in orders:
    for z in arguments:
        v = matern(float(nu), float(z))
        if v > 1e-290:
            rows.append((float(nu), float(z), v))
table("matern", rows)

rows = []
for d in [2, 3, 5, 16, 129, 1000, 100000]:
    for x in [0.0, 0.01, 1.0, 7.5, 30.0, 100.0]:
        rows.append((d, x, mp.hyp0f1(mp.mpf(d) / 2, -mp.mpf(x) ** 2 / 4)))
table("isotropic", rows)

rows = []
for m in ["0.5", "1", "1.7", "2", "3", "4", "6", "0.01", "11.3"]:
    a = mp.mpf(float(m)) / 2
    for z in ["0", "1e-9", "0.1", "0.4999", "0.5001", "0.8", "0.99", "0.999999", "0.9999999999", "1"]:
        rows.append((a, float(z), mp.hyp2f1(-a, -a, 1, mp.mpf(float(z)))))
table("binomial_square_sum", rows)

rows = []
for m, d in [(1, 2), (1, 10), (3, 8), (64, 784), (783, 784), (7, 5000), (30000, 60000)]:
    for x in map(mp.mpf, [1e-9, 0.01, 1.0, 20.0, 300.0, 1e5]):
        # Kummer's transformation: all terms of the series are positive.
        v = mp.exp(-x) * mp.hyp1f1(mp.mpf(d - m) / 2, mp.mpf(d) / 2, x, maxterms=10**6)
        if v > 1e-290:
            rows.append((mp.mpf(m) / 2, mp.mpf(d) / 2, x, v))
table("kummer", rows)



def incomplete_gamma(a, x):
    """P and Q from the positive series of P; enough digits that 1 - P is still good to 20."""
    with mp.workdps(350):
        a, x = mp.mpf(a), mp.mpf(x)
        p = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * mp.hyp1f1(1, a + 1, x, maxterms=10**6)
        return p, 1 - p


rows = []
for a in ["0.1", "0.5", "3", "12.5", "200", "1e5"]:
    for ratio in ["1e-3", "0.5", "0.97", "1", "1.02", "2", "6"]:
        x = float(mp.mpf(float(a)) * mp.mpf(ratio))
        p, q = incomplete_gamma(float(a), x)
        if min(p, q) > 1e-290:
            rows.append((float(a), x, p, q))
table("incomplete_gamma", rows)


def quantile(p):
    return mp.findroot(lambda x: mp.log(mp.ncdf(x) / p), -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else (p - 0.5) * 2.5)


rows = [(p, quantile(mp.mpf(p))) for p in [1e-300, 1e-50, 1e-9, 0.001, 0.2, 0.26, 0.4, 0.4999999]]
table("normal_quantile", rows)


def chi_square(freedom, p):
    a, p = mp.mpf(freedom) / 2, mp.mpf(p)
    z = mp.sqrt(2) * mp.erfinv(2 * p - 1)
    start = 2 * a * max(1 - 1 / (9 * a) + z / (3 * mp.sqrt(a)), mp.mpf("0.05")) ** 3
    if p < 0.5:
        lower = 2 * mp.exp((mp.log(p) + mp.loggamma(a + 1)) / a)
        start = lower if lower < a / 4 else start
    f = lambda u: mp.log(incomplete_gamma(a, mp.exp(u) / 2)[0] / p)
    g = lambda u: mp.log(incomplete_gamma(a, mp.exp(u) / 2)[1] / (1 - p))
    return mp.exp(mp.findroot(f if p < 0.5 else g, mp.log(start)))


rows = []
for freedom in [1, 2, 5, 99, 399, 10000]:
    for p in [1e-8, 0.01, 0.3, 0.75, 0.999]:
        rows.append((freedom, p, chi_square(freedom, p)))
table("chi_square_quantile", rows)
